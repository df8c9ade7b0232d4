//! Bugs of what the elections of a process, or two candidates of one election, share: a lease, a session, a heartbeat.

use super::{Bug, Change};

const CLAIM: &str = "crates/backend/src/lease/claim.rs";
const SIGNALS: &str = "crates/backend/src/lease/signals.rs";
const HEARTBEAT: &str = "crates/backend/src/session_lease/heartbeat.rs";
const SESSION_CLAIM: &str = "crates/backend/src/session_lease/claim.rs";
const RELEASE: &str = "crates/backend/src/session_lease/release.rs";
const PAIR: &str = "crates/backend/src/session_lease/pair.rs";
const ACTS: &str = "backends/raft/src/state/acts.rs";
const STATE: &str = "backends/raft/src/state/mod.rs";
const RAFT_SESSION: &str = "backends/raft/src/state/session.rs";

pub(super) const OF_REGISTERS: &[Bug] = &[
    Bug {
        name: "FloorOfAnother",
        breaks: "A claim's epoch is above what was seen of another election of the process.",
        changes: &[Change {
            file: CLAIM,
            good: "let highest = «self.memory().observations.epoch(on).max(floor)»;",
            bad: "{
                let memory = self.memory();
                let first = memory.followers.keys().min();
                first.map_or(Epoch::ZERO, |first| memory.observations.epoch(first))
            }",
        }],
        caught_by: &["epochs up"],
        case: None,
    },
    Bug {
        name: "SiblingIsMe",
        breaks: "A record that a candidate of this process holds is ours, whichever of them wrote it.",
        changes: &[Change {
            file: CLAIM,
            good: "«memory.observations.verdict(now, on, bid, dead)»;",
            bad: "{
                let is_held_here = |record: &Record| {
                    let holder = record.holder.as_ref().and_then(|holder| holder.incarnation);
                    holder.is_some_and(|who| memory.held.contains_key(&(on.clone(), who)))
                };
                match memory.observations.last(on).filter(|(record, _)| is_held_here(record)) {
                    Some((_, version)) => ClaimVerdict::Write { at: Some(version.clone()), after_crash: false },
                    None => memory.observations.verdict(now, on, bid, dead),
                }
            }",
        }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "HeldOfOthersKept",
        breaks: "After a reconnect only the first election's record is read again before it is written.",
        changes: &[Change {
            file: SIGNALS,
            good: "memory.held.clear();",
            bad: "
                let first = memory.held.keys().min().cloned();
                memory.held.retain(|key, _| Some(key) != first.as_ref());",
        }],
        caught_by: &["stale writes"],
        case: None,
    },
];

pub(super) const OF_SESSIONS: &[Bug] = &[
    Bug {
        name: "HeartbeatOfOne",
        breaks: "A heartbeat renews only the first election of its session.",
        changes: &[Change {
            file: HEARTBEAT,
            good: "held.as_ref().ok().map(|held| «held.contains(&wanted)»)",
            bad: "held.iter().min() == Some(&wanted)",
        }],
        caught_by: &["recovery"],
        case: None,
    },
    Bug {
        name: "HeartbeatOfAll",
        breaks: "A heartbeat that shows one election renews every election of its session.",
        changes: &[Change {
            file: HEARTBEAT,
            good: "held.as_ref().ok().map(|held| «held.contains(&wanted)»)",
            bad: "!held.is_empty()",
        }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "LeaseOfOne",
        breaks: "Releasing one election takes the lease off a session that holds others.",
        changes: &[Change {
            file: PAIR,
            good: "«others.map(|(_, hold)| hold.ttl).max().unwrap_or_default().max(claimed)»",
            bad: "{
                let _ = (others.count(), claimed);
                Duration::ZERO
            }",
        }],
        caught_by: &["recovery"],
        case: None,
    },
    Bug {
        name: "SiblingsLock",
        breaks: "A lock that another candidate of the process leads under is claimed as one's own.",
        changes: &[Change {
            file: SESSION_CLAIM,
            good: "Some(ClaimStage::Led(id, grant)) if «grant.incarnation != bid.who.incarnation» =>",
            bad: "{
                let _ = (&id, &grant);
                false
            }",
        }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "LeaverFreesSibling",
        breaks: "A candidate that leaves releases the lock that another one of its process leads under.",
        changes: &[Change {
            file: RELEASE,
            good: "if «grant.incarnation != who.incarnation» { return; }",
            bad: "false",
        }],
        caught_by: &["stale writes"],
        case: None,
    },
];

pub(super) const OF_CLUSTERS: &[Bug] = &[
    Bug {
        name: "KeepaliveOfOne",
        breaks: "A keepalive renews only the first election of its session.",
        changes: &[Change {
            file: STATE,
            good: "Some(«elections.iter().filter_map(led).collect()»)",
            bad: "elections.iter().filter_map(led).take(1).collect()",
        }],
        caught_by: &["recovery"],
        case: None,
    },
    Bug {
        name: "SessionEndsOne",
        breaks: "The end of a session ends only the first of its leaderships.",
        changes: &[Change {
            file: RAFT_SESSION,
            good: "for on in «session.elections» {",
            bad: "session.elections.into_iter().take(1).collect::<std::collections::BTreeSet<_>>()",
        }],
        caught_by: &["recovery"],
        case: None,
    },
    Bug {
        name: "LeaverEndsSibling",
        breaks: "A candidate that leaves ends the leadership of another one in its session.",
        changes: &[Change {
            file: ACTS,
            good: "if «election.holder.as_ref().is_some_and(|holder| holder.who.incarnation == incarnation)» { election.end(at, Ended::Released);",
            bad: "election.holder.as_ref().is_some_and(|holder| {
                holder.who.incarnation == incarnation || before == Some(holder.session)
            })",
        }],
        caught_by: &["exclusion"],
        case: None,
    },
];
