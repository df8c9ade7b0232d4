//! Bugs that show on a compare-and-set register: those of the lease and of what it has seen, and what sessions do not have.

use super::{Bug, Change};

const ACQUIRING: &str = "crates/core/src/machine/acquiring.rs";
const PREEMPT: &str = "crates/core/src/machine/preempt.rs";
const REQUESTS: &str = "crates/core/src/machine/requests.rs";
const STAGGER: &str = "crates/core/src/machine/stagger.rs";
const LEASE: &str = "crates/backend/src/lease/mod.rs";
const CLAIM: &str = "crates/backend/src/lease/claim.rs";
const RENEW: &str = "crates/backend/src/lease/renew.rs";
const SIGNALS: &str = "crates/backend/src/lease/signals.rs";
const OBSERVATIONS: &str = "crates/backend/src/observations.rs";

pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "WallClockExpiry",
        breaks: "Expiry is judged by comparing one's own wall clock with the record's.",
        changes: &[Change {
            file: CLAIM,
            good: "«memory.observations.verdict(now, on, bid, dead)»;",
            bad: "{
                let last = memory.observations.last(on);
                let expired = last.filter(|(record, _)| match (record.renewed, record.ttl) {
                    (Some(renewed), Some(ttl)) if record.is_held() => {
                        let age = self.clock.wall().as_unix_nanos().saturating_sub(renewed.as_unix_nanos());
                        i128::from(age) > ttl.as_nanos() as i128
                    }
                    _ => false,
                });
                match expired {
                    Some((_, version)) => ClaimVerdict::Write { at: Some(version.clone()), after_crash: false },
                    None => memory.observations.verdict(now, on, bid, dead),
                }
            }",
        }],
        caught_by: &["exclusion"],
        case: Some("a clock set ahead deposes nobody"),
    },
    Bug {
        name: "OwnTtlForRecord",
        breaks: "The follower uses its own ttl instead of the one in the record.",
        changes: &[Change { file: OBSERVATIONS, good: "record.ttl.unwrap_or(own)", bad: "own" }],
        caught_by: &["exclusion"],
        case: Some("the record's ttl counts, not the follower's"),
    },
    Bug {
        name: "ClaimIgnoresPause",
        breaks: "A claim does not mind a pause.",
        changes: &[Change {
            file: OBSERVATIONS,
            good: "let barred = «haunted.max(sight.paused_until(now))»;",
            bad: "haunted",
        }],
        caught_by: &["pauses"],
        case: Some("a pause keeps everybody out and ends by itself"),
    },
    Bug {
        name: "RenewalForgetsPause",
        breaks: "A renewal takes the pause out of the record.",
        changes: &[Change {
            file: RENEW,
            good: "Some(asked)), paused: «self.left_of_pause(on, &held.record)»,",
            bad: "None",
        }],
        caught_by: &["pauses"],
        case: Some("a pause takes nothing from the leader"),
    },
    Bug {
        name: "ReleaseForgetsPause",
        breaks: "A release takes the pause out of the record.",
        changes: &[Change {
            file: RENEW,
            good: "request: None, paused: «self.left_of_pause(on, &held.record)»,",
            bad: "None",
        }],
        caught_by: &["pauses"],
        case: Some("a pause outlives the leadership, released or silent"),
    },
    Bug {
        name: "PauseBeginsAnew",
        breaks: "Each renewal writes the whole span of the pause again, so that it never ends for those who come later.",
        changes: &[Change {
            file: OBSERVATIONS,
            good: "seen.map_or(Some(pause.clone()), |seen| «pause.left(seen.until, now)»)",
            bad: "{
                let _ = seen;
                Some(pause.clone())
            }",
        }],
        caught_by: &["pauses"],
        case: Some("a pause shrinks while a leader renews"),
    },
    Bug {
        name: "WaitsTwice",
        breaks: "A follower waits for two ttls without a sign of life.",
        changes: &[Change {
            file: OBSERVATIONS,
            good: "record.ttl.unwrap_or(own)",
            bad: "record.ttl.unwrap_or(own) * 2",
        }],
        caught_by: &["recovery"],
        case: None,
    },
    Bug {
        name: "VanishedIsFree",
        breaks: "A record that was seen and then vanished is free at once.",
        changes: &[Change { file: OBSERVATIONS, good: "if !record.is_held() { return; }", bad: "return;" }],
        caught_by: &["exclusion"],
        case: Some("a record seen and vanished counts for its ttl"),
    },
    Bug {
        name: "ToldAbsenceIsFree",
        breaks: "A record that vanished is free at once, if its absence was told and not yet read.",
        changes: &[Change {
            file: OBSERVATIONS,
            good: "if !record.is_held() { return; }",
            bad: "if !record.is_held() || !certain { return; }",
        }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "ObservationKeptOverRollback",
        breaks: "What was observed before a rollback or a reconnect is still trusted.",
        changes: &[
            Change {
                file: OBSERVATIONS,
                good: "sight.alive = !rolled_back && if renewed { before.is_some() } else { sight.alive };",
                bad: "
                    if rolled_back { return true; }
                    sight.alive = if renewed { before.is_some() } else { sight.alive };",
            },
            Change { file: SIGNALS, good: "memory.observations.restart(now);", bad: "" },
        ],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "SeenBeforeRead",
        breaks: "The time of an observation is taken before the read instead of after it.",
        changes: &[Change {
            file: LEASE,
            good: "(self.register.load(on).await?, self.clock.boot())",
            bad: "{ let before = self.clock.boot(); (self.register.load(on).await?, before) }",
        }],
        caught_by: &["exclusion"],
        case: Some("a slow look makes no record older"),
    },
    Bug {
        name: "RequestCountsAsRenewal",
        breaks: "A request counts as a renewal.",
        changes: &[Change {
            file: OBSERVATIONS,
            good: "(!old.is_same_beat(&record), back)",
            bad: "(true, back)",
        }],
        caught_by: &["recovery"],
        case: Some("a request does not count as a renewal"),
    },
    Bug {
        name: "BlindRenew",
        breaks: "Renewal writes without comparing.",
        changes: &[Change {
            file: RENEW,
            good: "self.adopt(on, grant)",
            bad: "self.adopt(on, grant).or_else(|| {
                let (_, version) = self.memory().observations.last(on).cloned()?;
                let mine = Held { version, ..self.held(on, grant)? };
                new(&mine, self.clock.wall()).is_held().then_some(mine)
            })",
        }],
        caught_by: &["stale writes"],
        case: Some("stale renew refused"),
    },
    Bug {
        name: "BlindRelease",
        breaks: "Release writes without comparing.",
        changes: &[Change {
            file: RENEW,
            good: "self.adopt(on, grant)",
            bad: "self.adopt(on, grant).or_else(|| {
                let (_, version) = self.memory().observations.last(on).cloned()?;
                let mine = Held { version, ..self.held(on, grant)? };
                (!new(&mine, self.clock.wall()).is_held()).then_some(mine)
            })",
        }],
        caught_by: &["stale writes"],
        case: Some("stale release refused"),
    },
    Bug {
        name: "SameIdIsMe",
        breaks: "A record with our id is ours, whichever start of us wrote it.",
        changes: &[Change {
            file: OBSERVATIONS,
            good: "bid.danger_reclaim && holder.id == bid.who.id",
            bad: "holder.id == bid.who.id",
        }],
        caught_by: &["exclusion"],
        case: Some("same id twice never leads twice"),
    },
    Bug {
        name: "CloneUnnoticed",
        breaks: "A record in the own name is the own one, also if a clone wrote it.",
        changes: &[Change { file: LEASE, good: "!beats.wrote(record.beat)", bad: "false" }],
        // Of two clones that lead, the one may lead on under its old epoch, or under a new one beside the other.
        caught_by: &["clones", "exclusion"],
        case: None,
    },
    Bug {
        name: "BeatIsCount",
        breaks: "The beat of a record is a count and nothing else, so that clones write the same.",
        changes: &[Change { file: RENEW, good: "let now = «self.clock.boot()»", bad: "Boot::default()" }],
        caught_by: &["clones"],
        case: None,
    },
    Bug {
        name: "EpochResetOnDelete",
        breaks: "Epochs start at one again when the record is gone.",
        changes: &[Change {
            file: CLAIM,
            good: "Ok(epoch.max(least))",
            bad: r#"Ok(if replaced.is_none() { Epoch::ZERO.next().expect("one") } else { epoch.max(least) })"#,
        }],
        caught_by: &["epochs up"],
        case: Some("epoch up over deletion of the record"),
    },
    Bug {
        name: "EpochFloorForgotten",
        breaks: "A candidate forgets the epochs that it has seen, and relies on the store's own count.",
        changes: &[Change {
            file: CLAIM,
            good: "let least = «self.least_epoch(on, bid.floor)?»;",
            bad: "replaced.and_then(|(record, _)| record.epoch).unwrap_or(Epoch::ZERO).next().unwrap_or(Epoch::ZERO)",
        }],
        caught_by: &["epochs up"],
        case: None,
    },
    Bug {
        name: "ReservationIgnored",
        breaks: "A released record that is kept for somebody is free for everybody.",
        changes: &[Change { file: OBSERVATIONS, good: "kept.candidate != bid.who.id", bad: "false" }],
        caught_by: &["reservations"],
        case: None,
    },
    Bug {
        name: "RequestUnheard",
        breaks: "A renewal takes a request out of the record, and the leader is not told.",
        changes: &[Change {
            file: SIGNALS,
            good: "self.told(on, grant.incarnation).as_ref() != Some(&request)",
            bad: "false",
        }],
        caught_by: &["requests"],
        case: None,
    },
    Bug {
        name: "EarlyRequestLost",
        breaks: "A request that comes before the leadership begins is forgotten.",
        changes: &[Change {
            file: REQUESTS,
            good: "self.attempt_mut()",
            bad: "None::<&mut super::acquiring::Attempt>",
        }],
        caught_by: &["requests"],
        case: None,
    },
    Bug {
        name: "PlannedStepDownForgotten",
        breaks: "A leader that is asked to step down later never does.",
        changes: &[Change {
            file: REQUESTS,
            good: "leading.planned = Some(planned)",
            bad: "drop((leading, planned))",
        }],
        caught_by: &["requests"],
        case: None,
    },
    Bug {
        name: "AsksOnce",
        breaks: "A candidate of higher priority asks a leadership only once, whatever becomes of that.",
        changes: &[Change {
            file: PREEMPT,
            good: "self.of(epoch).is_none_or(|asked| now >= asked.again_at)",
            bad: "self.of(epoch).is_none()",
        }],
        caught_by: &["requests"],
        case: None,
    },
    Bug {
        name: "FreeSleptOn",
        breaks: "A follower that sees the record free sleeps for its retry interval first.",
        changes: &[Change {
            file: ACQUIRING,
            good: "(seen.claimable_at(), seen.proof)",
            bad: "(seen.claimable_at(), Proof::Record)",
        }],
        caught_by: &["recovery"],
        case: None,
    },
    Bug {
        name: "StaggerUnbounded",
        breaks: "A follower waits twice as long after each lost race, without a bound, and no shorter after one that it won.",
        changes: &[
            Change {
                file: STAGGER,
                good: "(self.window * 2).max(FIRST).min(longest)",
                bad: "(self.window * 2).max(FIRST)",
            },
            Change { file: STAGGER, good: "let half = «self.window / 2»", bad: "self.window" },
        ],
        caught_by: &["recovery"],
        case: None,
    },
];
