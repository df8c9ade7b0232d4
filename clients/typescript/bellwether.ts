/**
 * Work in one process at a time, under a leadership that a `bellwether` process holds.
 *
 * Start `bellwether run ELECTION --for-clients --http unix:PATH` beside this program, and give {@link Campaign} the same address.
 *
 * A leadership is believed in until a deadline on this machine's own boot-time clock, which goes on while the machine is suspended. The
 * deadline counts from before the request whose answer named it, so it needs no other clock. `docs/clients.md` has the protocol.
 */

import { readFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import { createInterface } from "node:readline";

/** Between two attempts to reach `bellwether`: the first pause, and the longest, in milliseconds. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
/** How much longer than promised an answer may take. */
const PATIENCE_MS = 5_000;
/** `/proc/uptime` is cut off after hundredths of a second. */
const CLOCK_STEP_MS = 10;
/** The longest timer of Node. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/**
 * The boot-time clock, in milliseconds: it has passed this, and not yet 10 ms more. It also counts while the machine is suspended, which
 * Node's own clocks do not.
 */
export function bootMs(): number {
  return Math.round(parseFloat(readFileSync("/proc/uptime", "latin1")) * 1_000);
}

/** `bellwether` does not let this client campaign; asking again would not help. */
export class Refused extends Error {}

class Unknown extends Error {}

/** The right to work, for one epoch. */
export class Leadership {
  /** The fencing token: give it to whatever the work writes to, and let that refuse smaller ones. */
  readonly epoch: number;
  /** Aborted when the leadership is over. A blocked event loop makes it late; {@link holds} is never late. */
  readonly signal: AbortSignal;
  /** The deadline, which every renewal moves, on the boot-time clock. */
  deadlineMs = 0;
  private readonly over = new AbortController();
  private timer: NodeJS.Timeout | undefined;

  /** @internal */
  constructor(epoch: number) {
    this.epoch = epoch;
    this.signal = this.over.signal;
  }

  /** Whether the work may go on. Reads the clock, and asks nobody. Once it has said no, it says no for ever. */
  holds(): boolean {
    // The clock may have gone on by nearly one step since what it shows. The work stops then: an answer that comes later must not make
    // it look as if it had stopped by itself.
    if (!this.signal.aborted && bootMs() + CLOCK_STEP_MS > this.deadlineMs) this.end("deadline");
    return !this.signal.aborted;
  }

  /** @internal */
  extend(deadlineMs: number): void {
    this.deadlineMs = Math.max(this.deadlineMs, deadlineMs);
    clearTimeout(this.timer);
    if (!this.holds()) return;
    const left = Math.max(1, this.deadlineMs - CLOCK_STEP_MS - bootMs());
    this.timer = setTimeout(() => this.extend(0), Math.min(left, TIMER_MAX_MS));
  }

  /** @internal */
  end(reason: string): void {
    clearTimeout(this.timer);
    this.over.abort(new Error(`leadership over: ${reason}`));
  }
}

export interface Options {
  /** The token of `--http-token-file`, which a network address needs. */
  token?: string;
  /** When this process has ended, so has its work. Say false if other processes do the work, and outlive this one. */
  endsWithProcess?: boolean;
  /** Ends the campaign, and aborts the work. */
  signal?: AbortSignal;
}

interface Line {
  campaign: string;
  epoch: number | null;
  valid_ms: number;
  again_ms: number;
  ended?: string;
}

/** Takes part in an election through a `bellwether` process. */
export class Campaign {
  private readonly server: Server;
  private readonly body: string;
  private readonly stop: AbortSignal | undefined;
  private current: Leadership | undefined;

  /** The address is that of `--http`: `unix:PATH`, `http://HOST:PORT` or `https://HOST:PORT`. */
  constructor(address: string, options: Options = {}) {
    this.server = new Server(address, options.token);
    this.body = JSON.stringify({ ends_with_process: options.endsWithProcess ?? true });
    this.stop = options.signal;
  }

  /** Whether this process leads. Reads the clock, and asks nobody. */
  isLeader(): boolean {
    return this.current?.holds() ?? false;
  }

  /** The epoch of the present leadership. */
  get epoch(): number | undefined {
    return this.isLeader() ? this.current?.epoch : undefined;
  }

  /**
   * Calls `work` with every leadership, until it returns while the leadership still holds; resolves to what it returned. Rejects when `work`
   * rejects while the leadership holds, when `bellwether` refuses, and when the campaign's signal is aborted.
   *
   * `work` has to settle soon after its signal is aborted, with nothing of it left: only then may the next one lead before the deadline.
   */
  async lead<T>(work: (leadership: Leadership) => Promise<T>): Promise<T> {
    for (;;) {
      this.stop?.throwIfAborted();
      const session = new Session(this.server, this.body);
      const stopped = () => session.stop();
      this.stop?.addEventListener("abort", stopped);
      try {
        const leadership = await session.leadership();
        this.current = leadership;
        const outcome = await Promise.resolve(leadership).then(work).then(
          (value) => ({ value }),
          (error: unknown) => ({ error }),
        );
        const held = leadership.holds();
        if ("value" in outcome && held) return outcome.value;
        if ("error" in outcome && held) throw outcome.error;
      } finally {
        this.current = undefined;
        this.stop?.removeEventListener("abort", stopped);
        // The work has stopped.
        await session.finished();
      }
    }
  }
}

/** Asks in the name of one campaign. */
class Session {
  private id: string | undefined;
  private mine: Leadership | undefined;
  private readonly over = new AbortController();
  private readonly asking: Promise<void>;
  private settle: { led: (leadership: Leadership) => void; failed: (error: unknown) => void } | undefined;
  private readonly first: Promise<Leadership>;

  constructor(
    private readonly server: Server,
    private readonly body: string,
  ) {
    this.first = new Promise((led, failed) => (this.settle = { led, failed }));
    this.first.catch(() => {});
    this.asking = this.ask().catch((error: unknown) => this.settle?.failed(error));
  }

  leadership(): Promise<Leadership> {
    return this.first;
  }

  /** The work is to stop. The session goes on until it has. */
  stop(): void {
    if (this.mine === undefined) {
      this.settle?.failed(new Error("the campaign was stopped"));
    } else {
      this.mine.end("stopped");
    }
  }

  /** The work has stopped: the next one may lead at once. */
  async finished(): Promise<void> {
    this.mine?.end("finished");
    this.over.abort();
    await this.asking;
    if (this.id === undefined) return;
    try {
      // Once: if it does not arrive, the leadership ends at its deadline.
      for await (const _ of this.server.lines("DELETE", `/campaign/${this.id}`, "", AbortSignal.timeout(PATIENCE_MS)));
    } catch {
      return;
    }
  }

  private async ask(): Promise<void> {
    let pause = FIRST_PAUSE_MS;
    let patience = PATIENCE_MS;
    while (!this.over.signal.aborted) {
      const isNew = this.id === undefined;
      // Before the request: what the answer says counts from when the server had received it.
      const asked = bootMs();
      try {
        const path = isNew ? "/campaign" : `/campaign/${this.id}`;
        // An answer that never ends would keep this from asking again.
        const until = anyOf(this.over.signal, AbortSignal.timeout(patience));
        for await (const text of this.server.lines("POST", path, isNew ? this.body : "", until)) {
          const line = JSON.parse(text) as Line;
          patience = PATIENCE_MS + line.again_ms;
          this.hear(line, asked);
        }
        pause = FIRST_PAUSE_MS;
        continue;
      } catch (error) {
        if (error instanceof Refused) throw error;
        if (error instanceof Unknown && this.mine !== undefined) {
          this.mine.end("unknown");
          return;
        }
        // It was given up while it waited: it begins anew.
        if (error instanceof Unknown) this.id = undefined;
      }
      await sleep(pause, this.over.signal);
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }

  private hear(line: Line, asked: number): void {
    this.id = line.campaign;
    if (line.ended !== undefined) {
      this.mine?.end(line.ended);
    } else if (line.valid_ms > 0 && line.epoch !== null) {
      const isNew = this.mine === undefined;
      this.mine ??= new Leadership(line.epoch);
      this.mine.extend(asked + line.valid_ms);
      if (isNew) this.settle?.led(this.mine);
    }
  }
}

/** Requests to `bellwether`. */
class Server {
  private readonly options: http.RequestOptions;
  private readonly request: typeof http.request;

  constructor(address: string, token: string | undefined) {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    this.request = address.startsWith("https:") ? https.request : http.request;
    if (address.startsWith("unix:")) {
      this.options = { socketPath: address.slice("unix:".length), headers };
    } else if (/^https?:\/\//.test(address)) {
      const url = new URL(address);
      this.options = { hostname: url.hostname.replace(/^\[|\]$/g, ""), port: url.port, headers };
    } else {
      throw new Error(`${address} is no address of --http: write unix:PATH, http://HOST:PORT or https://HOST:PORT`);
    }
  }

  /** The lines of an answer, as they come. */
  async *lines(method: string, path: string, body: string, until: AbortSignal): AsyncGenerator<string> {
    const answer = await new Promise<http.IncomingMessage>((resolve, reject) => {
      const headers = { ...this.options.headers, "content-length": Buffer.byteLength(body) };
      const request = this.request({ ...this.options, method, path, headers, agent: false, signal: until }, resolve);
      request.on("error", reject);
      request.end(body);
    });
    const failed = new Promise<never>((_, reject) => answer.on("error", reject));
    failed.catch(() => {});
    const lines: string[] = [];
    for await (const line of createInterface({ input: answer })) {
      if (answer.statusCode === 200) yield line;
      else lines.push(line);
    }
    if (!answer.complete) await Promise.race([failed, Promise.reject(new Error("the answer was cut off"))]);
    const said = lines.join("\n");
    if (answer.statusCode === 200) return;
    if (answer.statusCode === 404) throw new Unknown(said);
    if ([400, 401, 403, 405, 409].includes(answer.statusCode ?? 0)) throw new Refused(said);
    throw new Error(`bellwether answers ${answer.statusCode}: ${said}`);
  }
}

/** Campaigns, and calls `work` with every leadership until it returns while the leadership still holds. See {@link Campaign.lead}. */
export function lead<T>(
  address: string,
  work: (leadership: Leadership) => Promise<T>,
  options: Options = {},
): Promise<T> {
  return new Campaign(address, options).lead(work);
}

/** `AbortSignal.any`, which Node has from 20.3 on. */
function anyOf(...signals: AbortSignal[]): AbortSignal {
  const any = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) any.abort(signal.reason);
    else signal.addEventListener("abort", () => any.abort(signal.reason), { once: true, signal: any.signal });
  }
  return any.signal;
}

function sleep(ms: number, until: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (until.aborted) return resolve();
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      until.removeEventListener("abort", done);
      resolve();
    }
    until.addEventListener("abort", done);
  });
}
