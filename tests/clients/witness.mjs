// Work that says on stdout when it begins, goes on and ends: event lines, on the boot-time clock.

import { writeSync } from "node:fs";
import { Campaign, bootMs } from "./dist/bellwether.js";

/** How long the work takes to stop. */
const STOPS_IN_MS = 50;

const leaving = new AbortController();
process.on("SIGTERM", () => leaving.abort());
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function say(event, leadership, at) {
  const line = {
    event,
    epoch: leadership.epoch,
    boot_ns: at * 1_000_000,
    incarnation: `typescript-${process.pid}`,
    deadline_boot_ns: leadership.deadlineMs * 1_000_000,
  };
  writeSync(1, `${JSON.stringify(line)}\n`);
}

async function work(leadership) {
  say("acquired", leadership, bootMs());
  for (;;) {
    // Before it asks: what it does then is covered by the answer.
    const now = bootMs();
    if (leaving.signal.aborted || !leadership.holds()) break;
    say("beat", leadership, now);
    await sleep(20);
  }
  await sleep(STOPS_IN_MS);
  // The clock shows up to 10 ms less than there is; and the end of work must not be told too early.
  say("released", leadership, bootMs() + 10);
  throw new Error("over");
}

const campaign = new Campaign(process.argv[2], { signal: leaving.signal });
while (!leaving.signal.aborted) {
  try {
    await campaign.lead(work);
  } catch (error) {
    if (error.message !== "over" && !leaving.signal.aborted) throw error;
  }
}
process.exit(0);
