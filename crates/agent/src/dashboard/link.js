// The connection to the process that serves this page: what it answers and tells, and whether it can be heard at all.
//
// Two signs of life: a question every second, and the stream of events. When either fails, the connection counts as lost at once, since the last
// answer. It is back when a question that was asked afterwards is answered. A process that is stopped keeps its stream open and
// answers nothing: the questions tell.

import { instant } from "./clock.js";

const PULSE_MS = 1000;
// An answer without a read of the store takes a few milliseconds; this one has to come through a slow line too.
const PULSE_TIMEOUT_MS = 2500;
// The process itself gives the store five seconds.
const ANSWER_TIMEOUT_MS = 7000;
const REOPEN_MS = [500, 1000, 2000, 4000];

// The events that are told; `error` is listened to apart, since a stream that breaks is announced under the same name.
const WORDS = [
  "status", "state_changed", "acquired", "released", "lost", "suspended", "resumed", "acquire_failed", "leader_changed", "danger",
  "child_started", "child_exited", "missed", "stopped",
];

export class Link {
  // `candidate` gets each answer to the pulse, `event` each event with its text, `changed` is called when the connection is lost or back.
  constructor({ candidate, event, changed }) {
    Object.assign(this, { candidate, event, changed });
    // "connecting" until the first answer; then "live" or "lost".
    this.state = "connecting";
    // The page itself has just been answered.
    this.heard = instant();
    this.breaks = 0;
    this.tries = 0;
  }

  start() {
    this.open();
    this.pulse();
  }

  // Asks, and returns the answer with the instant before the question, from which everything in it counts.
  async ask(path, timeout = ANSWER_TIMEOUT_MS) {
    const [asked, breaks] = [instant(), this.breaks];
    const answer = await fetch(path, {
      cache: "no-store",
      headers: { accept: "application/json" },
      signal: AbortSignal.timeout(timeout),
    });
    const value = await answer.json();
    this.alive(breaks);
    if (!answer.ok) throw new Error(value.error ?? `${path} is answered with ${answer.status}`);
    return { asked, value };
  }

  async pulse() {
    clearTimeout(this.next);
    const number = (this.number = (this.number ?? 0) + 1);
    try {
      this.candidate(await this.ask("candidate", PULSE_TIMEOUT_MS));
    } catch {
      // A question that another has followed says nothing new.
      if (number === this.number) this.broken();
    }
    // Unless another one was begun meanwhile.
    if (number === this.number) this.next = setTimeout(() => this.pulse(), PULSE_MS);
  }

  open() {
    this.stream?.close();
    const stream = (this.stream = new EventSource("events?kept"));
    let opened = false;
    stream.onopen = () => {
      opened = true;
      this.tries = 0;
    };
    for (const word of WORDS) stream.addEventListener(word, (event) => this.event(word, event.data));
    stream.addEventListener("error", (event) => {
      if (event instanceof MessageEvent) return this.event("error", event.data);
      if (stream !== this.stream) return;
      // Not left to the browser, which gives up after an answer that is an error.
      stream.close();
      // A process that has no room for one more stream can still be asked.
      if (opened) this.broken();
      setTimeout(() => this.open(), REOPEN_MS[Math.min(this.tries++, REOPEN_MS.length - 1)]);
      // The stream alone may have ended: then the answer says so at once.
      this.pulse();
    });
  }

  alive(breaks) {
    // What was asked before the break proves nothing after it.
    if (breaks !== this.breaks) return;
    this.heard = instant();
    this.become("live");
  }

  broken() {
    this.breaks += 1;
    this.become("lost");
  }

  become(state) {
    if (this.state === state) return;
    const before = this.state;
    this.state = state;
    this.changed(state, before);
  }
}
