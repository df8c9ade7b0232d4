//! Bugs that show on a server of sessions. Those of `crates/backend` are in the code that PostgreSQL runs too.

use super::{Bug, Change};

const MACHINE: &str = "crates/core/src/machine/mod.rs";
const TAKEOVER: &str = "crates/backend/src/takeover.rs";
const HEARTBEAT: &str = "crates/backend/src/session_lease/heartbeat.rs";
const RENEW: &str = "crates/backend/src/session_lease/renew.rs";
const RELEASE: &str = "crates/backend/src/session_lease/release.rs";
const CLAIM: &str = "crates/backend/src/session_lease/claim.rs";
const STORE: &str = "sim/src/session/store.rs";
const SERVER: &str = "sim/src/session/server.rs";
const WIRE: &str = "sim/src/session/wire.rs";

/// How the simulated store tries locks.
const TRY: &str = "self.ask(ttl, Statement::Claim(wishes, lease)).await?";

pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "GoneIgnored",
        breaks: "The end of the session does not end the leadership.",
        changes: &[Change { file: MACHINE, good: "self.session_gone()", bad: "()" }],
        caught_by: &["conflict is the end"],
        case: None,
    },
    Bug {
        name: "PresenceIgnored",
        breaks: "Whoever gets the lock leads, though somebody else is present.",
        changes: &[Change { file: TAKEOVER, good: "by_force: «now >= self.until()»", bad: "true" }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "RestartIgnored",
        breaks: "Whoever gets the lock leads, though the server has just ended all sessions.",
        changes: &[Change {
            file: TAKEOVER,
            good: "«if stood { Duration::ZERO } else { self.ttl }»;",
            bad: "Duration::ZERO",
        }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "RenewalFromAnswer",
        breaks: "A renewal counts from its answer.",
        changes: &[Change {
            file: RENEW,
            good: "Grant { counted_from: «beat.left», ..grant.clone() }",
            bad: "self.store.now()",
        }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "RenewalByOneSession",
        breaks: "A renewal counts though only the session of the lock answered for it.",
        changes: &[Change {
            file: HEARTBEAT,
            good: "Proven::by(has(&self.on_lock, key), «has(&self.on_presence, key.presence())»)",
            bad: "Some(true)",
        }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "LockBeforePresence",
        breaks: "The lock is released before the presence.",
        changes: &[Change {
            file: RELEASE,
            good: "tokio::join!(biased; presence.leave(key, ttl, lease), unlock())",
            bad: "{ let released = unlock().await; (presence.leave(key, ttl, lease).await, released) }",
        }],
        caught_by: &["work before release"],
        case: None,
    },
    Bug {
        name: "WaitsHalf",
        breaks: "Whoever gets the lock of somebody who is present leads after half a ttl.",
        changes: &[Change {
            file: TAKEOVER,
            good: "self.granted + self.ttl",
            bad: "self.granted + self.ttl / 2",
        }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "LateLockKept",
        breaks: "A lock that was granted after its caller had given up is neither led on nor undone.",
        changes: &[
            Change { file: CLAIM, good: "self.undo().await;", bad: "" },
            Change {
                file: STORE,
                good: TRY,
                bad: "
                    let wire = &self.shared.wire;
                    let said = wire.ask(&self.connection, ttl / 10, Statement::Claim(wishes, lease)).await;
                    said.map_err(failure)?",
            },
            Change {
                file: WIRE,
                good: "self.throw_away(on); Err(StatementFailure::Over)",
                bad: "if on.kind == SessionKind::Lock { Err(StatementFailure::Error) } else { self.throw_away(on); Err(StatementFailure::Over) }",
            },
        ],
        caught_by: &["recovery"],
        case: None,
    },
    Bug {
        name: "SessionAgeFromAsking",
        breaks: "The age of a session counts from when it was asked for, not from when it was there.",
        changes: &[Change {
            file: WIRE,
            good: "(self.wait(limit, || lock(&reply).clone()).await, self.now())",
            bad: "{ let asked = self.now(); (self.wait(limit, || lock(&reply).clone()).await, asked) }",
        }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "PresenceGivenUpEarly",
        breaks: "The session of presence is given up for a slow answer while a leadership still counts on it.",
        changes: &[Change {
            file: STORE,
            good: "self.ask(ttl, Statement::Look(keys.to_vec())).await",
            bad: "{
                let look = Statement::Look(keys.to_vec());
                self.shared.wire.ask(&self.connection, ttl / 2, look).await.map_err(failure)
            }",
        }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "EpochBeforeLock",
        breaks: "The epoch is assigned before the lock was granted.",
        changes: &[
            Change {
                file: STORE,
                good: TRY,
                bad: "
                    let early = wishes.iter().map(|wish| LockWish { again: true, ..wish.clone() }).collect();
                    let early = self.ask(ttl, Statement::Claim(early, lease)).await?;
                    let StatementAnswer::Locks(early) = early else { return Err(confused()) };
                    let mut tries = 10;
                    loop {
                        let said = self.ask(ttl, Statement::Claim(wishes.clone(), lease)).await?;
                        let StatementAnswer::Locks(said) = said else { return Err(confused()) };
                        tries -= 1;
                        let is_granted = |state: &LockState| matches!(state, LockState::Granted(_));
                        if tries == 0 || said.iter().any(is_granted) {
                            let each = said.into_iter().zip(early);
                            let each = each.map(|(said, early)| if is_granted(&said) { early } else { said });
                            break StatementAnswer::Locks(each.collect());
                        }
                        self.shared.wire.pause(ttl / 20).await;
                    }",
            },
            Change {
                file: SERVER,
                good: "None if wish.again => «LockState::Free»",
                bad: "LockState::Granted(self.number())",
            },
        ],
        caught_by: &["epochs up"],
        case: None,
    },
];
