// Time as this page tells it: spans between its own instants, and nobody else's clock.

// performance.now() may stand still while the machine is suspended, and Date may be set back. An instant has both, and what has passed is
// what the one says that has gone further: a deadline may so come too early, and never too late.
export function instant() {
  return { steady: performance.now(), wall: Date.now() };
}

// Milliseconds from one instant to another.
export function since(then, now = instant()) {
  return Math.max(now.steady - then.steady, now.wall - then.wall, 0);
}

// A time of day, with the date unless it is today.
export function timeOfDay(wall) {
  const at = new Date(wall);
  if (Number.isNaN(at.getTime())) return "–";
  const time = at.toLocaleTimeString("en-GB");
  return at.toDateString() === new Date().toDateString()
    ? time
    : `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}

// What is left, in tenths of a second and rounded down: it never says more than there is.
export function left(ms) {
  return `${(Math.floor(Math.max(ms, 0) / 100) / 10).toFixed(1)} s`;
}

// A span for people: its two largest units.
export function span(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const from = parts.findIndex(([size]) => seconds >= size);
  const [[large, a], [small, b]] = parts.slice(from, from + 2);
  const rest = Math.floor((seconds % large) / small);
  return rest ? `${Math.floor(seconds / large)} ${a} ${rest} ${b}` : `${Math.floor(seconds / large)} ${a}`;
}

// A latency.
export function latency(ms) {
  if (ms < 10) return `${ms.toFixed(2)} ms`;
  return ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
