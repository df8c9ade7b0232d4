//! Bugs that show on a Raft cluster. Those of `backends/raft` are in the code that its nodes run.

use super::{Bug, Change};

const KEEPALIVE: &str = "backends/raft/src/keepalive/mod.rs";
const STATE: &str = "backends/raft/src/state/mod.rs";
const ELECTION: &str = "backends/raft/src/state/election.rs";
const ACTS: &str = "backends/raft/src/state/acts.rs";
const SERVE: &str = "sim/src/raft/serve.rs";
const CLIENT: &str = "sim/src/raft/client.rs";

pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "KeepaliveWithoutRound",
        breaks: "A keepalive is acknowledged though no majority confirmed that the node leads.",
        changes: &[Change { file: SERVE, good: "let kept = if «confirmed» {", bad: "true" }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "KeptWhileExpiring",
        breaks: "A keepalive is counted and acknowledged while the expiry of its session is proposed.",
        changes: &[
            Change { file: KEEPALIVE, good: "if «life.expiring» { return", bad: "false" },
            Change { file: KEEPALIVE, good: "is_some_and(|life| «!life.expiring»)", bad: "true" },
        ],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "NewLeaderCountsLess",
        breaks: "A new Raft leader does not count the whole ttl of every session again.",
        changes: &[
            Change {
                file: KEEPALIVE,
                good: "(id, Life { ttl, last: «now», expiring: false })",
                bad: "now - ttl * 3 / 4",
            },
            Change {
                file: KEEPALIVE,
                good: "timers.set(Timed::Session(*id), «now + life.ttl»);",
                bad: "now + life.ttl / 4",
            },
        ],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "KeepaliveNotCounted",
        breaks: "A keepalive is acknowledged and does not put off the expiry.",
        changes: &[Change { file: KEEPALIVE, good: "now.max(life.last)", bad: "life.last" }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "ExpiryOfAnotherTerm",
        breaks: "An expiry that was decided in one term is applied in another.",
        changes: &[Change { file: STATE, good: "if «term != at.term» {", bad: "false" }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "EpochFromFloorAlone",
        breaks: "The new epoch is above what the bidder knows, and not above what the cluster has issued.",
        changes: &[
            Change {
                file: ACTS,
                good: "Some(by_index.max(stored.next()?).max(floor.next()?))",
                bad: "floor.next()",
            },
            Change { file: ELECTION, good: "assert!(«epoch > self.epoch»,", bad: "true" },
        ],
        caught_by: &["epochs up", "alternation"],
        case: None,
    },
    Bug {
        name: "ResignIgnoresEpoch",
        breaks: "A late release ends the leadership of whoever leads by then.",
        changes: &[Change {
            file: ELECTION,
            good: "self.epoch == epoch && self.holder.as_ref().is_some_and(|holder| holder.who.incarnation == incarnation)",
            bad: "self.holder.is_some() && (epoch <= self.epoch || incarnation.bits() == 0)",
        }],
        caught_by: &["exclusion", "conflict is the end"],
        case: None,
    },
    Bug {
        name: "HolderIgnored",
        breaks: "A campaign is granted though somebody else leads.",
        changes: &[Change {
            file: ACTS,
            good: "if bid.danger_reclaim && holder.who.id == bid.who.id { Turn::Free } else { Turn::Taken }",
            bad: "Turn::Free",
        }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "KeptFromAnswer",
        breaks: "A renewal counts from the answer to its keepalive.",
        changes: &[Change {
            file: CLIENT,
            good: "Some(Reply::Kept(led)) => Some(Beat { left: «waiting.left», led })",
            bad: "now",
        }],
        caught_by: &["exclusion"],
        case: None,
    },
];
