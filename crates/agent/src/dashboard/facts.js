// What this page knows, from when it knows it, and what may be said of it now.

import { instant, since } from "./clock.js";

// As many events and leaderships as a person looks through.
const EVENTS_MAX = 100;

export class Facts {
  // Each with `asked`, the instant before it was asked for: it is not younger than that.
  candidate = null;
  status = null;
  elections = null;
  history = null;
  // Latest first.
  events = [];
  #told = new Set();
  // By the name of an election: what its record looked like, and since when it looks so.
  #records = new Map();

  tookCandidate(answer) {
    // Answers may overtake each other. What was asked later counts.
    if (!this.candidate || answer.asked.steady >= this.candidate.asked.steady) this.candidate = answer;
  }

  tookStatus(answer) {
    if (this.status && answer.asked.steady < this.status.asked.steady) return;
    this.status = answer;
    this.tookCandidate({ asked: answer.asked, value: answer.value.candidate });
    if (!answer.value.error) this.#saw(answer.value, answer.asked);
  }

  tookElections(answer) {
    this.elections = answer;
    for (const record of answer.value.elections) this.#saw(record, answer.asked);
  }

  tookHistory(answer) {
    this.history = answer;
  }

  // True if it is news: a stream that is opened again begins with what was told before.
  tookEvent(text) {
    if (this.#told.has(text)) return false;
    this.#told.add(text);
    this.events.unshift(JSON.parse(text));
    if (this.events.length > EVENTS_MAX) this.events.pop();
    // Far more than a stream begins with.
    if (this.#told.size > 10 * EVENTS_MAX) this.#told = new Set([...this.#told].slice(-2 * EVENTS_MAX));
    return true;
  }

  #saw(record, asked) {
    const mark = JSON.stringify([record.incarnation, record.holder, record.epoch, record.renewed]);
    const before = this.#records.get(record.election);
    // A session that is open shows no renewals, and each look that finds it open is a sign of life.
    const isSession = record.renewed === null && record.proof === "alive";
    const same = before?.mark === mark && !isSession;
    this.#records.set(record.election, { mark, from: same ? before.from : asked, looked: asked });
  }

  // How a record stands, by how long this page has seen it unchanged: nobody's wall clock is compared with another's. Silence is what a
  // look has shown; that this page did not look, or nobody answered, says nothing of the leader.
  life(record, now = instant()) {
    if (record.holder === null) return { kind: record.proof === "alive" ? "held" : "nobody" };
    if (record.proof === "dead") return { kind: "dead" };
    if (record.proof === "released") return { kind: "nobody" };
    const known = this.#records.get(record.election);
    if (!known || record.ttl_ms === null) return { kind: "held" };
    const left = record.ttl_ms - since(known.from, now);
    const isSilent = since(known.from, known.looked) >= record.ttl_ms;
    return isSilent ? { kind: "silent", past: -left } : { kind: "held", left: Math.max(left, 0) };
  }

  // Who leads this election, and how sure that is.
  //
  // - "leading": this process leads, which is certain for `left` more milliseconds
  // - "expired": it led, and its deadline has passed without word of a renewal
  // - "following": the record names another leader, who has given a sign of life within the ttl
  // - "silent", "dead": the record names one who has not, or whose process is gone
  // - "nobody": the record is free
  // - "unknown": nothing has been heard of it
  standing(now = instant()) {
    const own = this.candidate?.value;
    if (!own) return { kind: "unknown" };
    if (own.valid_ms > 0) {
      const left = own.valid_ms - since(this.candidate.asked, now);
      const who = { leader: own.id, epoch: own.epoch };
      return left > 0 ? { kind: "leading", ...who, left } : { kind: "expired", ...who, past: -left };
    }
    const record = this.status?.value;
    if (!record || record.error) {
      return own.leader === null ? { kind: "unknown" } : { kind: "following", leader: own.leader, epoch: null };
    }
    const life = this.life(record, now);
    // This process has stopped leading since the record was read.
    const isOwn = record.incarnation !== null && record.incarnation === own.incarnation;
    if (life.kind === "nobody" || (isOwn && life.kind === "held")) return { kind: "nobody", reserved: record.reserved_for };
    const kind = life.kind === "held" ? "following" : life.kind;
    return { ...life, kind, leader: record.holder, epoch: record.epoch };
  }

  // The leaderships that were lost, latest first: as the store has them, and as this process has told.
  losses() {
    const stored = (this.history?.value ?? [])
      .filter((past) => past.ended !== null && past.ended !== "released")
      .map((past) => ({ epoch: past.epoch, id: past.id, reason: past.ended, at: past.until }));
    const told = this.events
      .filter((event) => event.event === "lost" || event.event === "suspended")
      .map((event) => ({ epoch: event.epoch, id: event.id, reason: event.reason, at: event.time }));
    const all = new Map([...stored, ...told].map((loss) => [`${loss.epoch} ${loss.id}`, loss]));
    return [...all.values()].sort((a, b) => b.epoch - a.epoch);
  }
}
