//! Bugs that show on either kind of store: those of the candidate's state machine, and of its clock.

use super::{Bug, Change};

const MACHINE: &str = "crates/core/src/machine/mod.rs";
const ACQUIRING: &str = "crates/core/src/machine/acquiring.rs";
const LEADING: &str = "crates/core/src/machine/leading.rs";
const RELEASING: &str = "crates/core/src/machine/releasing.rs";
const HEALTH: &str = "crates/core/src/machine/health.rs";

pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "DeadlineFromAnswer",
        breaks: "The deadline counts from the answer instead of from the request.",
        changes: &[Change { file: LEADING, good: "grant.counted_from.min(self.now)", bad: "self.now" }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "NoMargin",
        breaks: "The margin is not subtracted.",
        changes: &[Change {
            file: LEADING,
            good: "self.settings.timing().deadline(from, grant.ttl)",
            bad: "from + grant.ttl",
        }],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "FailureCountInsteadOfDeadline",
        breaks: "Failed renewals are counted, and the deadline does not exist: a hung call never counts.",
        changes: &[
            Change { file: LEADING, good: "«leading.stop_at».min(renewal)", bad: "Boot::FOREVER" },
            Change { file: LEADING, good: "self.now >= leading.stop_at", bad: "false" },
            Change { file: LEADING, good: "self.settings.options().failed_renewals", bad: "Some(3)" },
        ],
        caught_by: &["exclusion"],
        case: None,
    },
    Bug {
        name: "ResumeAfterStop",
        breaks: "A renewal that succeeds after the work was told to stop brings the leadership back.",
        changes: &[Change {
            file: MACHINE,
            good: "self.renewed(call, outcome);",
            bad: "
                if let crate::Outcome::Done(grant) = &outcome
                    && self.work.ended(grant.epoch)
                {
                    self.promote(grant.clone());
                }
                self.renewed(call, outcome);",
        }],
        // Whichever shows first: the epoch is back, or it is released a second time.
        caught_by: &["alternation", "work before release"],
        case: None,
    },
    Bug {
        name: "ReleaseBeforeWorkEnds",
        breaks: "The record is released while the work is still stopping.",
        changes: &[Change {
            file: RELEASING,
            good: "self.enter(State::Releasing(releasing));",
            bad: "
                self.enter(State::Releasing(releasing));
                self.write_release(epoch);",
        }],
        caught_by: &["work before release"],
        case: None,
    },
    Bug {
        name: "ConflictIsTransient",
        breaks: "A conflict on renewal is taken for a passing error.",
        changes: &[
            Change { file: LEADING, good: "self.shows_us(&seen)", bad: "true" },
            Change { file: LEADING, good: "self.overtaken_by(seen)", bad: "false" },
        ],
        caught_by: &["conflict is the end"],
        case: None,
    },
    Bug {
        name: "DenialIsFailure",
        breaks: "A denial counts as a failure: followers back off while all is well.",
        changes: &[
            Change {
                file: ACQUIRING,
                good: "«self.backoff.over();» self.tell(CoreEvent::AcquireFailed",
                bad: "",
            },
            Change {
                file: ACQUIRING,
                good: "self.wait(until.max(self.now + DENIED_PAUSE));",
                bad: r#"
                    let denied = StoreError::new(ErrorKind::Unavailable, "store", "denied");
                    let later = self.backoff.another(self.now, &denied, &self.settings, &mut self.rng);
                    self.wait(later.unwrap_or(until).max(until));"#,
            },
        ],
        caught_by: &["recovery"],
        case: None,
    },
    Bug {
        name: "LateClaimIgnored",
        breaks: "The late answer of a claim is thrown away.",
        changes: &[Change { file: ACQUIRING, good: "!self.acts_on(&grant)", bad: "false" }],
        caught_by: &["grants"],
        case: None,
    },
    Bug {
        name: "GraceKeepsLeading",
        breaks: "The reconnect grace keeps the old leadership alive.",
        changes: &[Change {
            file: LEADING,
            good: "(grace, doubtful)",
            bad: "{
                if let (Some(grace), true, State::Leader(leading)) = (grace, doubtful, &mut self.state) {
                    leading.deadline = self.now + grace;
                    leading.stop_at = leading.deadline;
                    self.outputs.push_back(Output::Believe { epoch, until: leading.deadline });
                    return;
                }
                (grace, doubtful)
            }",
        }],
        caught_by: &["conflict is the end"],
        case: None,
    },
    Bug {
        name: "CooldownIgnored",
        breaks: "Whoever stepped down competes again at once.",
        changes: &[Change {
            file: RELEASING,
            good: "self.stay_away.cool_down(self.now + cooldown)",
            bad: "()",
        }],
        caught_by: &["cooldown"],
        case: None,
    },
    Bug {
        name: "HealthIgnored",
        breaks: "The health check is run and not minded.",
        changes: &[Change {
            file: HEALTH,
            good: "self.settings.options().health_failures.is_some()",
            bad: "false",
        }],
        caught_by: &["health"],
        case: None,
    },
    Bug {
        name: "ClockStopsInSuspend",
        breaks: "The clock behind the deadline stands still while the machine sleeps.",
        changes: &[Change { file: "sim/src/clock.rs", good: "counts_suspend: «true»", bad: "false" }],
        caught_by: &["exclusion"],
        case: None,
    },
];
