// Work that says on stdout when it begins, goes on, begins to stop and ends: event lines, on the boot-time clock.
//
// The environment may have WITNESS_TOKEN, and WITNESS_STOPS=told: then the work ends only after a SIGHUP.

import { writeSync } from "node:fs";
import { Campaign, bootMs } from "./dist/bellwether.js";

/** How long the work takes to stop. */
const STOPS_IN_MS = 50;

const told = new Promise((resolve) => process.on("SIGHUP", resolve));
const leaving = new AbortController();
process.on("SIGTERM", () => leaving.abort());
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * The boot-time clock in nanoseconds, finer than the client needs it: Node's own clock, and for how long the machine was suspended before.
 * A difference below two steps of `/proc/uptime` is none.
 */
const apart = BigInt(bootMs()) * 1_000_000n - process.hrtime.bigint();
const suspended = apart < 20_000_000n && apart > -20_000_000n ? 0n : apart;
const bootNs = () => Number(process.hrtime.bigint() + suspended);

function say(event, leadership, at) {
  const line = {
    event,
    election: "job",
    epoch: leadership.epoch,
    boot_ns: at,
    incarnation: `typescript-${process.pid}`,
    deadline_boot_ns: leadership.deadlineMs * 1_000_000,
    holds: leadership.holds() ? "yes" : "no",
  };
  writeSync(1, `${JSON.stringify(line)}\n`);
}

async function work(leadership) {
  say("acquired", leadership, bootNs());
  for (;;) {
    // Before it asks: what it does then is covered by the answer.
    const now = bootNs();
    if (leaving.signal.aborted || !leadership.holds()) break;
    say("beat", leadership, now);
    await sleep(20);
  }
  say("stopping", leadership, bootNs());
  await (process.env.WITNESS_STOPS === "told" ? told : sleep(STOPS_IN_MS));
  say("released", leadership, bootNs());
  throw new Error("over");
}

const campaign = new Campaign(process.argv[2], { token: process.env.WITNESS_TOKEN, signal: leaving.signal });
while (!leaving.signal.aborted) {
  try {
    await campaign.lead(work);
  } catch (error) {
    if (error.message !== "over" && !leaving.signal.aborted) throw error;
  }
}
process.exit(0);
