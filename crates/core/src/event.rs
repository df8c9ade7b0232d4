//! What is told to the outside.

use crate::{Boot, CandidateId, Epoch, Error};

/// The states of a candidate, by name only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum StateName {
    /// No task, no connection.
    #[default]
    Stopped,
    /// Waiting: for a change, a timer, a cooldown, a health gate.
    Follower,
    /// One attempt under way.
    Acquiring,
    /// Leading, with a deadline in the future.
    Leader,
    /// Suspended: not leading, trying to get back within the grace.
    Reconnecting,
    /// The work has been told to stop, or the release is being written.
    Releasing,
}

impl StateName {
    /// The word used in events, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            StateName::Stopped => "stopped",
            StateName::Follower => "follower",
            StateName::Acquiring => "acquiring",
            StateName::Leader => "leader",
            StateName::Reconnecting => "reconnecting",
            StateName::Releasing => "releasing",
        }
    }
}

/// Why a leadership ended against the leader's will.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// No renewal was confirmed in time.
    Deadline,
    /// The store has another holder, a later epoch, or no record.
    Conflict,
    /// The session ended, or renewals failed as often as the settings allow.
    Connection,
    /// The health check failed as often as the settings allow.
    Health,
    /// Validation found that the record is not ours.
    Validation,
    /// A candidate of a higher priority asked for it.
    Preempted,
    /// Somebody asked the leader to step down, through the store.
    Admin,
    /// The store refused for good.
    Refused,
}

impl Reason {
    /// Every reason, for tables.
    pub const ALL: [Reason; 8] = [
        Reason::Deadline,
        Reason::Conflict,
        Reason::Connection,
        Reason::Health,
        Reason::Validation,
        Reason::Preempted,
        Reason::Admin,
        Reason::Refused,
    ];

    /// Whether a leadership that ends so still protects its work for as long as it is renewed: the leader was asked to let go,
    /// or does so by its own choice.
    pub const fn is_planned(self) -> bool {
        matches!(self, Reason::Health | Reason::Preempted | Reason::Admin)
    }

    /// The word used in events, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Deadline => "deadline",
            Reason::Conflict => "conflict",
            Reason::Connection => "connection",
            Reason::Health => "health",
            Reason::Validation => "validation",
            Reason::Preempted => "preempted",
            Reason::Admin => "admin",
            Reason::Refused => "refused",
        }
    }
}

impl Reason {
    /// What it means, in a few words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Reason::Deadline => "no renewal was confirmed in time",
            Reason::Conflict => "the store has another holder, a later epoch, or no record",
            Reason::Connection => "the session ended, or renewals failed as often as the settings allow",
            Reason::Health => "the health check failed as often as the settings allow",
            Reason::Validation => "the record, read back, is not ours",
            Reason::Preempted => "a candidate of a higher priority asked for it",
            Reason::Admin => "somebody asked the leader to step down, through the store",
            Reason::Refused => "the store refused for good",
        }
    }
}

/// Something happened to this candidate.
#[derive(Clone, Debug)]
pub struct Event {
    /// When.
    pub at: Boot,
    /// The attempt it belongs to: one number from the claim to its outcome, 0 before the first.
    pub attempt: u64,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum What {
    /// From one state to another.
    StateChanged {
        /// The state before.
        from: StateName,
        /// The state from now on.
        to: StateName,
    },
    /// Leading.
    Acquired {
        /// The number of this leadership.
        epoch: Epoch,
        /// Believed until then, unless renewed.
        deadline: Boot,
    },
    /// Let go by choice.
    Released {
        /// The number of the leadership that ended.
        epoch: Epoch,
        /// Whether the store acknowledged it. If not, the record runs out by itself.
        confirmed: bool,
    },
    /// Lost.
    Lost {
        /// The number of the leadership that ended.
        epoch: Epoch,
        /// Why.
        reason: Reason,
        /// When belief in it ended at the latest, which may be long before anybody was awake to say so.
        deadline: Boot,
        /// Whether the store acknowledged a release: the work had ended, and others need not wait for the ttl.
        released: bool,
    },
    /// In doubt, so over; a new leadership may follow within the grace.
    Suspended {
        /// The number of the leadership that ended.
        epoch: Epoch,
        /// Why.
        reason: Reason,
        /// When belief in it ended at the latest.
        deadline: Boot,
    },
    /// Leading again after a suspension, under a new number.
    Resumed {
        /// The number of the new leadership.
        epoch: Epoch,
        /// Believed until then, unless renewed.
        deadline: Boot,
    },
    /// An attempt was denied.
    AcquireFailed {
        /// Who was in the way, where the store can tell.
        holder: Option<CandidateId>,
    },
    /// Another leader, or none.
    LeaderChanged {
        /// The leader as far as the store shows.
        leader: Option<CandidateId>,
        /// The number of its leadership, where there is one and the store shows it.
        epoch: Option<Epoch>,
    },
    /// A renewal is overdue by half the time that is left until the work is told to stop.
    Danger {
        /// The leadership in danger.
        epoch: Epoch,
        /// When it ends if nothing is confirmed.
        deadline: Boot,
    },
    /// Something went wrong. It ends a leadership only where another event says so.
    Error(Error),
    /// Not taking part any more.
    Stopped,
    /// The work is a process, and it was started. Comes from whoever runs it, never from the machine.
    ChildStarted {
        /// Its process id.
        pid: u32,
    },
    /// The process has ended, and everything that it had started. Never comes from the machine.
    ChildExited {
        /// Its exit code; 128 and the number of the signal that ended it.
        code: u8,
    },
    /// A subscriber was too slow: so many events were dropped here. Never comes from the machine itself.
    Missed {
        /// How many.
        count: u64,
        /// The state after them.
        state: StateName,
    },
}

impl What {
    /// Every word that [`as_str`](What::as_str) can be.
    pub const WORDS: [&'static str; 14] = [
        "state_changed",
        "acquired",
        "released",
        "lost",
        "suspended",
        "resumed",
        "acquire_failed",
        "leader_changed",
        "danger",
        "error",
        "stopped",
        "child_started",
        "child_exited",
        "missed",
    ];

    /// The word used in events and logs.
    pub const fn as_str(&self) -> &'static str {
        match self {
            What::StateChanged { .. } => "state_changed",
            What::Acquired { .. } => "acquired",
            What::Released { .. } => "released",
            What::Lost { .. } => "lost",
            What::Suspended { .. } => "suspended",
            What::Resumed { .. } => "resumed",
            What::AcquireFailed { .. } => "acquire_failed",
            What::LeaderChanged { .. } => "leader_changed",
            What::Danger { .. } => "danger",
            What::Error(_) => "error",
            What::Stopped => "stopped",
            What::ChildStarted { .. } => "child_started",
            What::ChildExited { .. } => "child_exited",
            What::Missed { .. } => "missed",
        }
    }

    /// What it means, for tables.
    pub const fn meaning(&self) -> &'static str {
        match self {
            What::StateChanged { .. } => {
                "from one state to another: `stopped`, `follower`, `acquiring`, `leader`, `reconnecting`, `releasing`"
            }
            What::Acquired { .. } => "leading",
            What::Released { .. } => "let go by choice; whether the store acknowledged it",
            What::Lost { .. } => {
                "lost, and why; when belief ended at the latest; whether the store acknowledged a release"
            }
            What::Suspended { .. } => {
                "leadership is uncertain and has ended; it may resume under a new epoch within the grace"
            }
            What::Resumed { .. } => "leading again after a suspension, under a new epoch",
            What::AcquireFailed { .. } => {
                "an attempt was denied; who was in the way, where the store can tell"
            }
            What::LeaderChanged { .. } => "another leader, or none (null)",
            What::Danger { .. } => {
                "a renewal is overdue by half the time left until the work is told to stop"
            }
            What::Error(_) => "something went wrong; it ends a leadership only where another event says so",
            What::Stopped => "not taking part any more",
            What::ChildStarted { .. } => "COMMAND runs; its process id",
            What::ChildExited { .. } => {
                "COMMAND and everything that it started have ended; its exit code, 128 + n for signal n"
            }
            What::Missed { .. } => "the reader was too slow: so many lines were left out here",
        }
    }

    /// One of each, for tables.
    pub fn examples() -> Vec<What> {
        let (epoch, deadline) = (Epoch::ZERO, Boot::default());
        let (reason, state) = (Reason::Deadline, StateName::Stopped);
        vec![
            What::StateChanged { from: state, to: state },
            What::Acquired { epoch, deadline },
            What::Released { epoch, confirmed: true },
            What::Lost { epoch, reason, deadline, released: false },
            What::Suspended { epoch, reason, deadline },
            What::Resumed { epoch, deadline },
            What::AcquireFailed { holder: None },
            What::LeaderChanged { leader: None, epoch: None },
            What::Danger { epoch, deadline },
            What::ChildStarted { pid: 0 },
            What::ChildExited { code: 0 },
            What::Error(Error::new(crate::ErrorKind::Unavailable, "store", "an example")),
            What::Missed { count: 0, state },
            What::Stopped,
        ]
    }

    /// The leadership it is about, if it is about one.
    pub const fn epoch(&self) -> Option<Epoch> {
        match self {
            What::Acquired { epoch, .. }
            | What::Released { epoch, .. }
            | What::Lost { epoch, .. }
            | What::Suspended { epoch, .. }
            | What::Resumed { epoch, .. }
            | What::Danger { epoch, .. } => Some(*epoch),
            What::LeaderChanged { epoch, .. } => *epoch,
            What::StateChanged { .. }
            | What::AcquireFailed { .. }
            | What::Error(_)
            | What::Stopped
            | What::ChildStarted { .. }
            | What::ChildExited { .. }
            | What::Missed { .. } => None,
        }
    }
}
