//! The states, each holding only what it knows.

use super::Call;
use crate::{Boot, CandidateId, CoreEvent, Epoch, Grant, Reason, Request, StateName};

#[derive(Clone, Debug)]
pub(super) enum State {
    Stopped,
    /// Not trying before `wake`.
    Follower {
        wake: Boot,
    },
    Acquiring(Attempt),
    Leader(Leading),
    Reconnecting(Suspended),
    Releasing(Letting),
}

impl State {
    pub(super) fn name(&self) -> StateName {
        match self {
            State::Stopped => StateName::Stopped,
            State::Follower { .. } => StateName::Follower,
            State::Acquiring(_) => StateName::Acquiring,
            State::Leader(_) => StateName::Leader,
            State::Reconnecting(_) => StateName::Reconnecting,
            State::Releasing(_) => StateName::Releasing,
        }
    }

    /// The leadership that is held, or whose work is being stopped.
    pub(super) fn held(&self) -> Option<Epoch> {
        match self {
            State::Leader(leading) => Some(leading.grant.epoch),
            State::Releasing(letting) => Some(letting.grant.epoch),
            State::Stopped | State::Follower { .. } | State::Acquiring(_) | State::Reconnecting(_) => None,
        }
    }
}

/// One try to lead, from the claim until it is certain what became of it.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) claim: Call,
    /// The highest epoch known when the claim left.
    pub(super) floor: Epoch,
    /// What somebody asks of the leadership that this attempt is about to bring. It is obeyed at the promotion.
    pub(super) asked: Option<Request>,
    pub(super) step: Step,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The claim is under way; at `expires` it counts as unknown.
    Claiming { expires: Boot },
    /// The claim's outcome is unknown; a look will tell.
    Looking { call: Call, expires: Boot },
    /// Granted on evidence of a crash: the last of the old work may still be dying.
    Settling { grant: Grant, until: Boot },
}

impl Attempt {
    pub(super) fn due(&self) -> Boot {
        match &self.step {
            Step::Claiming { expires } | Step::Looking { expires, .. } => *expires,
            Step::Settling { until, .. } => *until,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Leading {
    pub(super) grant: Grant,
    /// Belief ends.
    pub(super) deadline: Boot,
    /// The work is told to stop.
    pub(super) stop_at: Boot,
    pub(super) renewal: Renewal,
    /// Renewals that failed in a row.
    pub(super) failures: u32,
    /// The next renewal comes together with those of others, as far as is known; where they are spread, one after it is to come
    /// earlier.
    pub(super) bunched: bool,
    /// When to warn; `None` once warned, until a renewal is confirmed.
    pub(super) danger_at: Option<Boot>,
    pub(super) validation: Validation,
    /// The last call before it began: the answer to an earlier one is about an earlier leadership.
    pub(super) after: Call,
    /// Since when the connection has been silent.
    pub(super) doubt_since: Option<Boot>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Renewal {
    Due(Boot),
    UnderWay { call: Call, expires: Boot },
}

impl Renewal {
    pub(super) fn due(&self) -> Boot {
        match self {
            Renewal::Due(at) => *at,
            Renewal::UnderWay { expires, .. } => *expires,
        }
    }

    /// Whether this call is the one under way.
    pub(super) fn is(&self, call: Call) -> bool {
        matches!(self, Renewal::UnderWay { call: under_way, .. } if *under_way == call)
    }
}

#[derive(Clone, Debug)]
pub(super) enum Validation {
    Off,
    Due(Boot),
    UnderWay { call: Call, expires: Boot },
}

impl Validation {
    pub(super) fn due(&self) -> Boot {
        match self {
            Validation::Off => Boot::FOREVER,
            Validation::Due(at) => *at,
            Validation::UnderWay { expires, .. } => *expires,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Suspended {
    /// The leadership that is over.
    pub(super) epoch: Epoch,
    pub(super) reason: Reason,
    /// When belief in it ended.
    pub(super) deadline: Boot,
    /// The grace ends.
    pub(super) until: Boot,
    /// Not trying before then.
    pub(super) wake: Boot,
    pub(super) attempt: Option<Attempt>,
}

impl Suspended {
    /// The leadership is lost after all.
    pub(super) fn as_lost(&self) -> CoreEvent {
        CoreEvent::Lost { epoch: self.epoch, reason: self.reason, deadline: self.deadline, released: false }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Letting {
    pub(super) grant: Grant,
    /// As in [`Leading`].
    pub(super) after: Call,
    /// Past it nothing is written.
    pub(super) deadline: Boot,
    pub(super) why: Why,
    pub(super) then: Then,
    pub(super) reserve_for: Option<CandidateId>,
    /// Renewals while the work stops, in a planned end.
    pub(super) keep: Option<Keep>,
    pub(super) step: LettingStep,
}

/// Keeping a record whose work is being stopped.
#[derive(Clone, Debug)]
pub(super) struct Keep {
    /// No renewal from then on.
    pub(super) until: Boot,
    pub(super) renewal: Renewal,
}

#[derive(Clone, Debug)]
pub(super) enum LettingStep {
    /// The work has been told to stop.
    EndingWork,
    /// The work is over and the release is being written.
    Writing { call: Call, expires: Boot },
}

/// Whether a leadership is given up by choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Chosen,
    Lost(Reason),
}

impl Why {
    /// Asked to make room, by its own program or through the store: a cooldown applies.
    pub(super) fn is_step_down(self) -> bool {
        matches!(self, Why::Chosen | Why::Lost(Reason::Admin))
    }
}

/// What comes after a leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Stand,
    Stop,
}
