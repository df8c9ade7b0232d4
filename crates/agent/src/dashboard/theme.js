// Dark or light: as the system says, or as chosen here and kept for this browser.

import { at, write } from "./page.js";

const CHOICES = ["system", "light", "dark"];
const KEY = "bellwether-theme";

export function startTheme() {
  choose(kept());
  at("theme").addEventListener("click", () => {
    const next = CHOICES[(CHOICES.indexOf(document.documentElement.dataset.theme) + 1) % CHOICES.length];
    choose(next);
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // A browser that keeps nothing: the choice lasts as long as the page.
    }
  });
}

function kept() {
  try {
    const choice = localStorage.getItem(KEY);
    return CHOICES.includes(choice) ? choice : "system";
  } catch {
    return "system";
  }
}

function choose(choice) {
  document.documentElement.dataset.theme = choice;
  write(at("theme"), `Theme: ${choice}`);
}
