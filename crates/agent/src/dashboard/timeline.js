// What has happened: past leaderships as bars and as a table, losses, and events.

import { span, timeOfDay } from "./clock.js";
import { at, badge, fill, make, show, write } from "./page.js";
import { EVENTS, REASONS, reasonTone } from "./words.js";

const LEADERSHIPS_MAX = 20;
const LANES_MAX = 6;
const LOSSES_MAX = 5;
const EVENTS_SHOWN = 30;

export function showLeaderships(facts, standing) {
  const kept = facts.status?.value.store?.history;
  const past = (facts.history?.value ?? []).slice(-LEADERSHIPS_MAX);
  show(at("leaderships"), past.length > 0);
  write(at("timeline-note"), kept === false ? "This store keeps no history."
    : past.length || !facts.history ? "" : "Nobody has led this election yet.");
  // The last one goes on if it is the one that leads now.
  const running = ["leading", "following"].includes(standing.kind) ? standing.epoch : null;
  const key = [past, running];
  fill(at("leaderships").tBodies[0], key, () => past.toReversed().map((one) => row(one, running)));
  // Bars grow: they are drawn again every ten seconds.
  fill(at("lanes"), [key, running && Math.floor(Date.now() / 10_000)], () => lanes(past, running));
}

function row(one, running) {
  const isRunning = one.until === null && one.epoch === running;
  const lasted = one.until === null ? "–" : span(Date.parse(one.until) - Date.parse(one.since));
  const [word, tone] = ended(one, isRunning);
  return make("tr", {},
    make("td", { class: "number" }, `${one.epoch}`), make("th", { scope: "row" }, one.id),
    make("td", { class: "number" }, timeOfDay(one.since)), make("td", { class: "number" }, lasted), make("td", {}, badge(word, tone)));
}

function ended(one, isRunning) {
  if (one.ended === "released") return ["Released", "quiet"];
  if (one.ended !== null) return [`Lost: ${one.ended}`, reasonTone(one.ended)];
  return isRunning ? ["Latest", "info"] : ["Not recorded", "warn"];
}

// A lane for each candidate, and a bar in it for each leadership.
function lanes(past, running) {
  if (!past.length) return [];
  const begin = Date.parse(past[0].since);
  const end = Math.max(running === null ? 0 : Date.now(), ...past.map((one) => Date.parse(one.until ?? one.since)));
  const width = Math.max(end - begin, 1);
  const ids = [...new Set(past.toReversed().map((one) => one.id))].slice(0, LANES_MAX);
  const drawn = ids.map((id) => {
    const bars = past.map((one, index) => [one, past[index + 1]]).filter(([one]) => one.id === id).map(([one, next]) => {
      const isRunning = one.until === null && one.epoch === running;
      // Without a recorded end, it ended at the next one's begin at the latest.
      const until = one.until ?? (isRunning ? new Date().toISOString() : next?.since ?? one.since);
      const bar = make("span", { class: "span", "data-tone": ended(one, isRunning)[1], title: `epoch ${one.epoch}` });
      bar.style.left = `${((Date.parse(one.since) - begin) / width) * 100}%`;
      bar.style.width = `${((Date.parse(until) - Date.parse(one.since)) / width) * 100}%`;
      return bar;
    });
    return make("div", { class: "lane" }, make("span", { class: "lane-name" }, id), make("div", { class: "lane-track" }, ...bars));
  });
  const axis = make("div", { class: "lane" }, make("span", { class: "lane-name" }, ""),
    make("div", { class: "axis" }, make("span", {}, timeOfDay(begin)), make("span", {}, timeOfDay(end))));
  return [...drawn, axis];
}

export function showLosses(facts) {
  const losses = facts.losses().slice(0, LOSSES_MAX);
  fill(at("losses"), losses, () => losses.map((loss) => make("li", {},
    badge(loss.reason, reasonTone(loss.reason)),
    make("div", {},
      make("p", {}, REASONS[loss.reason] ?? ""),
      make("p", { class: "hint" }, `${loss.id}, epoch ${loss.epoch}, ${timeOfDay(loss.at)}`)))));
  write(at("losses-note"), losses.length ? "" : "No leadership has been lost, as far as is known here.");
}

export function showEvents(facts) {
  const events = facts.events.filter((event) => EVENTS[event.event]).slice(0, EVENTS_SHOWN);
  fill(at("events"), events.map((event) => [event.boot_ns, event.event]), () => events.map((event) => {
    const [tone, sentence] = EVENTS[event.event];
    return make("li", { "data-tone": tone }, make("time", { datetime: event.time }, timeOfDay(event.time)), make("span", {}, sentence(event)));
  }));
  write(at("events-note"), events.length ? "" : "Nothing has happened yet.");
}
