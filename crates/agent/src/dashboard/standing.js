// The first card: who leads, how sure that is, and for how long. And this process, and the candidates.

import { left, since as passed, span, timeOfDay } from "./clock.js";
import { at, badge, fill, make, show, tone, write } from "./page.js";
import { STANDINGS, STATES } from "./words.js";

export function showStanding(facts, link, standing, now) {
  const words = STANDINGS[standing.kind];
  const isLost = link.state === "lost";
  // A deadline holds whether or not anybody is heard; what the record says was so when it was last heard.
  const isOld = link.state === "lost" && !["leading", "expired", "unknown"].includes(standing.kind);
  const hero = at("standing");
  hero.dataset.standing = standing.kind;
  tone(hero, isOld ? "quiet" : words.tone);
  write(at("standing-badge"), isOld ? "Last known" : words.badge);
  tone(at("standing-badge"), isOld ? "quiet" : words.tone);
  write(at("leader-label"), isOld ? "Last known leader" : "Leader");
  write(at("leader"), name(standing));
  at("leader").classList.toggle("long", name(standing).length > 48);
  write(at("standing-says"), says(standing, words, isOld));

  const ttl = facts.status?.value.ttl_ms;
  const counts = standing.left !== undefined && !isOld;
  show(at("countdown"), counts);
  if (counts) {
    write(at("left"), left(standing.left));
    write(at("countdown-label"), words.countdown);
    at("fill").style.transform = `scaleX(${Math.min(standing.left / (ttl ?? standing.left), 1)})`;
  }
  const record = facts.status?.value;
  write(at("election"), record?.election ?? "…");
  write(at("epoch"), `${standing.epoch ?? "–"}`);
  // By the leader's own clock, and of the leadership that is shown.
  const isOfRecord = standing.kind !== "expired" && standing.epoch !== undefined && standing.epoch === record?.epoch;
  write(at("since"), isOfRecord && record.since ? timeOfDay(record.since) : "–");
  write(at("renewed"), renewed(facts, standing, now));
  write(at("ttl"), record?.ttl_ms ? span(record.ttl_ms) : "–");
  write(at("as-of"), isLost ? `As of ${timeOfDay(link.heard.wall)}` : "");
}

function name(standing) {
  if (standing.kind === "nobody") return "Nobody";
  if (standing.kind === "unknown" || standing.kind === "expired") return "Unknown";
  return standing.leader ?? "Not named by the store";
}

function says(standing, words, isOld) {
  const extra = {
    expired: () => ` ${standing.leader} led under epoch ${standing.epoch} until ${span(standing.past)} ago.`,
    nobody: () => (standing.reserved ? ` It is reserved for ${standing.reserved}.` : ""),
    silent: () => ` That was due ${span(standing.past)} ago.`,
  }[standing.kind]?.();
  return (isOld ? "When last heard: " : "") + words.says + (extra ?? "");
}

// How long ago the leader's last sign of life was, as far as it is known here.
function renewed(facts, standing, now) {
  if (standing.kind === "leading" || standing.kind === "expired") {
    const last = facts.candidate.value.renewals?.findLast((one) => one.status === "success");
    return last ? `${span(last.ago_ms + passed(facts.candidate.asked, now))} ago` : "–";
  }
  const ttl = facts.status?.value.ttl_ms;
  if (ttl && standing.left !== undefined) return `${span(ttl - standing.left)} ago`;
  return ttl && standing.past !== undefined ? `${span(ttl + standing.past)} ago` : "–";
}

export function showProcess(facts) {
  const own = facts.candidate?.value;
  if (!own) return;
  write(at("own-id"), own.id);
  write(at("own-state"), STATES[own.state] ?? own.state);
  const store = facts.status?.value.store?.kind;
  const answers = { connected: "answers", silent: "does not answer", unknown: "has not answered yet" };
  write(at("own-store"), [store, answers[own.connection] ?? own.connection].filter(Boolean).join(": "));
  write(at("own-count"), `${own.leaderships} of ${own.attempts} claims`);
  write(at("own-error"), own.last_error ?? facts.status?.value.error ?? "none");
}

export function showCandidates(facts, standing, isLost) {
  const record = facts.status?.value;
  const own = facts.candidate?.value;
  if (!record || !own) return;
  const leader = ["leading", "following"].includes(standing.kind) ? standing.leader : null;
  const ids = [...new Set([leader, own.id, ...(record.followers ?? [])].filter((id) => id !== null))];
  const word = (id) => {
    if (id === leader && standing.kind === "leading") return ["Leads", "good"];
    if (isLost) return [id === leader ? "Last known leader" : "Last known", "quiet"];
    if (id === leader) return ["Recorded leader", "info"];
    return id === own.id && standing.kind === "expired" ? ["Uncertain", "warn"] : ["Stands by", "quiet"];
  };
  const rows = ids.map((id) => [id, ...word(id), id === own.id]);
  fill(at("candidates"), rows, () => rows.map(([id, word, tone, isOwn]) => make("li", {},
    make("span", { class: "name" }, id, ...(isOwn ? [make("span", { class: "hint" }, " this process")] : [])),
    badge(word, tone))));
  const note = record.followers === null ? "This store does not know who else stands by."
    : record.followers_complete ? "" : "There may be others that the store does not know of.";
  write(at("candidates-note"), note);
}
