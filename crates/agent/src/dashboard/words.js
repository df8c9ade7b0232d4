// What states, events and reasons are called for people.

// For each standing: the badge, its tone, and what it means. `lost` is the badge while the connection is lost.
export const STANDINGS = {
  leading: {
    badge: "Leading", tone: "good",
    says: "This process leads, and can be relied on until its deadline.",
    countdown: "until the deadline, unless renewed",
  },
  expired: {
    badge: "Uncertain", tone: "warn",
    says: "The deadline has passed without word of a renewal. Nobody can be said to lead.",
  },
  following: {
    badge: "Recorded", tone: "info",
    says: "The store names this leader. This process stands by.",
    countdown: "until the leader counts as silent, unless renewed",
  },
  silent: {
    badge: "Silent", tone: "warn",
    says: "The record has not been renewed for its whole TTL. Another candidate may take over.",
  },
  dead: { badge: "Dead", tone: "bad", says: "The leader’s process is known to be gone. A candidate takes over." },
  nobody: { badge: "No leader", tone: "warn", says: "Nobody leads this election." },
  unknown: { badge: "Not known", tone: "quiet", says: "The store has not said who leads." },
};

export const LIVES = {
  held: ["Renewed", "info"],
  silent: ["Silent", "warn"],
  dead: ["Dead", "bad"],
  nobody: ["Free", "quiet"],
};

export const STATES = {
  stopped: "stopped",
  follower: "follower: waits for its turn",
  acquiring: "acquiring: claims the leadership",
  leader: "leader",
  reconnecting: "reconnecting: suspended, not leading",
  releasing: "releasing: stops its work",
};

// Ends that somebody wanted are no alarm.
export const reasonTone = (reason) => (["admin", "preempted"].includes(reason) ? "quiet" : "bad");

export const REASONS = {
  deadline: "the deadline passed before a renewal succeeded",
  conflict: "another candidate held the record",
  connection: "the connection to the store was lost",
  health: "the health check failed",
  validation: "the record, read back, was not the leader’s",
  preempted: "a candidate of higher priority took over",
  admin: "somebody asked for it",
  refused: "the store refused the renewal",
};

// The events that are shown, with tone and sentence.
export const EVENTS = {
  acquired: ["good", (e) => `Leads under epoch ${e.epoch}`],
  resumed: ["good", (e) => `Leads again under epoch ${e.epoch}`],
  released: ["quiet", (e) => `Released epoch ${e.epoch}${e.confirmed ? "" : "; the store did not confirm it"}`],
  lost: ["bad", (e) => `Lost epoch ${e.epoch}: ${REASONS[e.reason] ?? e.reason}`],
  suspended: ["warn", (e) => `Suspended epoch ${e.epoch}: ${REASONS[e.reason] ?? e.reason}`],
  leader_changed: ["quiet", (e) => (e.leader === null ? "Nobody leads" : `${e.leader} leads`)],
  danger: ["warn", (e) => `A renewal of epoch ${e.epoch} is overdue`],
  child_started: ["quiet", (e) => `Command started as process ${e.pid}`],
  child_exited: ["quiet", (e) => `Command ended with code ${e.code}`],
  error: ["bad", (e) => e.error],
  missed: ["warn", (e) => `${e.count} events were missed here`],
  stopped: ["quiet", () => "This candidate stopped"],
};
