// How long renewals took: a bar for each of the last, and what they are together.

import { latency, since, span } from "./clock.js";
import { at, fill, make, write } from "./page.js";

export function showRenewals(facts, now) {
  const known = facts.candidate?.value.renewals;
  const all = known ?? [];
  const good = all.filter((one) => one.status === "success").map((one) => one.took_ms).sort((a, b) => a - b);
  const failed = all.length - good.length;
  const longest = Math.max(...all.map((one) => one.took_ms), 0);
  fill(at("spark"), all.map((one) => [one.took_ms, one.status]), () => bars(all, longest));
  write(at("renewal-last"), all.length ? latency(all.at(-1).took_ms) : "–");
  write(at("renewal-median"), good.length ? latency(good[Math.floor((good.length - 1) / 2)]) : "–");
  write(at("renewal-longest"), all.length ? latency(longest) : "–");
  write(at("renewal-failed"), all.length ? `${failed} of ${all.length}` : "–");
  const ago = all.length ? span(all[0].ago_ms + since(facts.candidate.asked, now)) : "";
  const said = all.length
    ? `The last ${all.length} renewals: the last took ${latency(all.at(-1).took_ms)}, the longest ${latency(longest)}; ${failed} failed`
    : "No renewal yet";
  if (at("spark").getAttribute("aria-label") !== said) at("spark").setAttribute("aria-label", said);
  write(at("renewals-note"), known === null ? "This process does not measure its renewals."
    : all.length ? `By this process, in the last ${ago}` : "This process has not renewed a leadership yet.");
}

function bars(all, longest) {
  return all.map((one) => {
    const failed = one.status !== "success";
    const bar = make("span", { class: failed ? "bar-one failed" : "bar-one", title: `${latency(one.took_ms)}, ${one.status}` });
    // One that failed is as high as there is room, and hatched: not by its colour alone.
    bar.style.height = failed ? "100%" : `${Math.max((one.took_ms / (longest || 1)) * 100, 4)}%`;
    return bar;
  });
}
