// Every election that the store can list, as its record stands.

import { at, badge, fill, make, show, write } from "./page.js";
import { LIVES } from "./words.js";

export function showElections(facts, problem, isLost, now) {
  const listed = facts.elections?.value;
  const rows = (listed?.elections ?? []).map((record) => {
    const life = facts.life(record, now).kind;
    const [word, tone] = isLost ? ["Last known", "quiet"] : LIVES[life];
    return [record.election, record.holder ?? (life === "held" ? "not named" : "–"), record.epoch ?? "–", word, tone];
  });
  show(at("elections"), rows.length > 0);
  fill(at("elections").tBodies[0], rows, () => rows.map(([election, leader, epoch, word, tone]) => make("tr", {},
    make("th", { scope: "row" }, election), make("td", { class: "name" }, leader),
    make("td", { class: "number" }, `${epoch}`), make("td", {}, badge(word, tone)))));
  const more = listed ? listed.count - listed.elections.length : 0;
  write(at("elections-note"), facts.status?.value.store?.lists === false ? "This store cannot list its elections."
    : problem ?? (more > 0 ? `${more} more are not shown: bellwether top shows all.` : ""));
}
