// The dashboard: asks and listens (link.js), keeps what it knows (facts.js), and shows it.
//
// Nothing is shown as certain past its deadline: what is shown is worked out anew five times in a second, and at the very
// end of each deadline, from when each answer was asked for.

import { instant, since, span, timeOfDay } from "./clock.js";
import { showElections } from "./elections.js";
import { Facts } from "./facts.js";
import { Link } from "./link.js";
import { at, show, tone, write } from "./page.js";
import { showRenewals } from "./renewals.js";
import { showCandidates, showProcess, showStanding } from "./standing.js";
import { startTheme } from "./theme.js";
import { showEvents, showLeaderships, showLosses } from "./timeline.js";

const DRAW_MS = 200;
const LIST_MS = 10_000;
// A record is read some times within its ttl, so that renewals show; not more often than once in a second, and not less often than in five.
const READS_IN_TTL = 5;
// History is written after a promotion.
const SETTLE_MS = 300;

const facts = new Facts();
const problems = {};
const link = new Link({
  candidate: (answer) => {
    facts.tookCandidate(answer);
    draw();
  },
  event: (word, text) => {
    if (word !== "status" && !facts.tookEvent(text)) return;
    read.soon();
    draw();
  },
  changed: (state, before) => {
    if (state === "live") read.soon();
    if (before !== "connecting" || state === "lost") announce(state === "live" ? "Connected again." : "Disconnected. What is shown is old.");
    draw();
  },
});

// Reads of the store: the record, and what changes with it. One at a time, however many events ask for it.
const read = {
  timer: null,
  busy: false,
  wanted: false,
  listed: null,
  soon() {
    this.wanted = true;
    this.in(SETTLE_MS / 2);
  },
  in(ms) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(), ms);
  },
  async now() {
    if (this.busy) return;
    this.busy = true;
    const all = this.wanted || this.listed === null || since(this.listed) >= LIST_MS;
    this.wanted = false;
    await part("status", (answer) => facts.tookStatus(answer));
    const can = facts.status?.value.store;
    if (all && can) {
      this.listed = instant();
      if (can.history) await part("history", (answer) => facts.tookHistory(answer));
      if (can.lists) await part("elections", (answer) => facts.tookElections(answer));
    }
    this.busy = false;
    draw();
    const ttl = facts.status?.value.ttl_ms ?? 5000;
    this.in(this.wanted ? SETTLE_MS : Math.min(Math.max(ttl / READS_IN_TTL, 1000), 5000));
  },
};

async function part(path, took) {
  // Whether anybody is there is found out by the pulse: a question without an answer is asked again when there is one.
  if (link.state === "lost") return;
  try {
    took(await link.ask(path));
    problems[path] = null;
  } catch (error) {
    problems[path] = error.message;
  }
}

let drawn = "";

function draw() {
  const now = instant();
  const standing = facts.standing(now);
  const isLost = link.state === "lost";
  document.body.dataset.link = link.state;
  write(at("link"), { connecting: "Connecting", live: "Live", lost: "Disconnected" }[link.state]);
  tone(at("link"), { connecting: "quiet", live: "good", lost: "bad" }[link.state]);
  show(at("lost"), isLost);
  if (isLost) {
    write(at("lost-since"), timeOfDay(link.heard.wall));
    const old = standing.kind === "leading" ? "The leadership is certain until its deadline. All else" : "What is shown";
    write(at("lost-for"), `Nothing has been heard for ${span(since(link.heard, now))}. ${old} is from then, and may be wrong.`);
  }
  showStanding(facts, link, standing, now);
  showProcess(facts);
  showCandidates(facts, standing, isLost);
  showRenewals(facts, now);
  showLeaderships(facts, standing);
  showLosses(facts);
  showEvents(facts);
  showElections(facts, problems.elections, isLost, now);
  // A hidden page is drawn late: its title names the election, and nobody as its leader.
  const election = facts.status?.value.election;
  const title = election ? `${election} – Bellwether` : "Bellwether";
  if (document.title !== title) document.title = title;
  const said = `${standing.kind} ${standing.leader ?? ""}`;
  if (drawn !== said && drawn && !drawn.startsWith("unknown")) {
    announce({ leading: `${standing.leader} leads.`, following: `${standing.leader} is recorded as leader.`, expired: "The deadline has passed. It is uncertain who leads." }[standing.kind] ?? `${at("standing-badge").textContent}.`);
  }
  drawn = said;
  clearTimeout(next);
  // A deadline is not drawn late.
  next = setTimeout(draw, standing.kind === "leading" ? Math.min(DRAW_MS, standing.left) : DRAW_MS);
}

let next;

function announce(sentence) {
  write(at("news"), sentence);
}

startTheme();
link.start();
read.now();
draw();
// A page that was hidden, frozen or kept for the way back shows at once how it stands.
for (const event of ["visibilitychange", "pageshow", "focus"]) {
  window.addEventListener(event, () => {
    draw();
    if (!document.hidden) link.pulse();
  });
}
