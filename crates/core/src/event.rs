//! What a candidate tells the outside: its state, why it lost a leadership, and its events.

use crate::words::words;
use crate::{Boot, CandidateId, Epoch, ErrorKind, StoreError};

words! {
    /// The state of a candidate.
    ///
    /// More states may be added: match with a wildcard.
    #[derive(Default)]
    #[non_exhaustive]
    StateName {
        #[default]
        Stopped = "stopped": "not taking part",
        Follower = "follower": "waiting for a change, a timer, the end of a cooldown, or a health check",
        Acquiring = "acquiring": "trying to become the leader",
        Leader = "leader": "leading, with a deadline in the future",
        Reconnecting = "reconnecting": "not leading, and trying to regain the lead within the reconnect grace",
        Releasing = "releasing": "the work has been told to stop, or the release is being written",
    }
}

words! {
    /// Why a leadership was lost.
    #[non_exhaustive]
    Reason {
        Deadline = "deadline": "no renewal was confirmed in time",
        Conflict = "conflict": "the store has another holder, a later epoch, or no record",
        Connection = "connection": "the session ended, or too many renewals failed",
        Health = "health": "the health check failed too often",
        Validation = "validation": "validation found that the record is not ours",
        Preempted = "preempted": "a candidate of a higher priority preempted the leader",
        Admin = "admin": "somebody asked the leader to step down",
        Refused = "refused": "the store refused, and trying again cannot help",
    }
}

impl Reason {
    /// Whether the leader ends the leadership itself, so that the record still protects the work for as long as it is renewed.
    pub const fn is_planned(self) -> bool {
        matches!(self, Reason::Health | Reason::Preempted | Reason::Admin)
    }
}

/// Something that happened to a candidate.
///
/// The machine tells of most; of the command that is the leader's work, and of missed events, whoever runs the machine.
///
/// ```
/// use bellwether_core::What;
///
/// for what in What::examples() {
///     println!("{}: {}", what.as_str(), what.meaning());
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum What {
    /// The candidate went from one state to another.
    StateChanged {
        /// The state before.
        from: StateName,
        /// The state from now on.
        to: StateName,
    },
    /// A leadership began.
    Acquired {
        /// Its epoch.
        epoch: Epoch,
        /// It ends then, unless renewed.
        deadline: Boot,
    },
    /// The leader gave the leadership up.
    Released {
        /// The epoch that ended.
        epoch: Epoch,
        /// Whether the store acknowledged the release. If not, the record expires by itself.
        confirmed: bool,
    },
    /// The leadership ended against the leader's will.
    Lost {
        /// The epoch that ended.
        epoch: Epoch,
        /// Why.
        reason: Reason,
        /// The latest instant at which it ended, which may be long before the process was awake to say so.
        deadline: Boot,
        /// Whether the store acknowledged a release: the work had ended, and others need not wait for the ttl.
        released: bool,
    },
    /// Leadership is uncertain and has ended; it may resume under a new epoch.
    Suspended {
        /// The epoch that ended.
        epoch: Epoch,
        /// Why.
        reason: Reason,
        /// The latest instant at which it ended.
        deadline: Boot,
    },
    /// A new leadership began after a suspension.
    Resumed {
        /// Its epoch.
        epoch: Epoch,
        /// It ends then, unless renewed.
        deadline: Boot,
    },
    /// The store denied a claim.
    AcquireFailed {
        /// The holder, where the store can tell.
        holder: Option<CandidateId>,
    },
    /// Somebody else leads, or nobody.
    LeaderChanged {
        /// The leader as far as the store shows.
        leader: Option<CandidateId>,
        /// The leader's epoch, where the store shows it.
        epoch: Option<Epoch>,
    },
    /// A renewal is overdue by half the time that is left until the work is told to stop.
    Danger {
        /// The leadership in danger.
        epoch: Epoch,
        /// When it ends, unless renewed.
        deadline: Boot,
    },
    /// The leader's work is a process, which was started.
    ChildStarted {
        /// Its process id.
        pid: u32,
    },
    /// The process and everything that it started have ended.
    ChildExited {
        /// Its exit code; 128 + n for signal n.
        code: u8,
    },
    /// Something went wrong. A leadership ends only where another event says so.
    Error(StoreError),
    /// This subscriber was too slow, and events were dropped here.
    Missed {
        /// How many.
        count: u64,
        /// The state after them.
        state: StateName,
    },
    /// The candidate stopped.
    Stopped,
}

impl What {
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
            What::Error(StoreError::new(ErrorKind::Unavailable, "store", "an example")),
            What::Missed { count: 0, state },
            What::Stopped,
        ]
    }

    /// The word used in events and logs.
    pub const fn as_str(&self) -> &'static str {
        self.describe().0
    }

    /// What it means, for tables.
    pub const fn meaning(&self) -> &'static str {
        self.describe().1
    }

    /// Its word, and what it means.
    const fn describe(&self) -> (&'static str, &'static str) {
        match self {
            What::StateChanged { .. } => (
                "state_changed",
                "the candidate went from one state to another: `stopped`, `follower`, `acquiring`, `leader`, `reconnecting`, `releasing`",
            ),
            What::Acquired { .. } => ("acquired", "a leadership began"),
            What::Released { .. } => {
                ("released", "the leader gave the leadership up; whether the store acknowledged it")
            }
            What::Lost { .. } => (
                "lost",
                "the leadership was lost, and why; the latest instant at which it ended; whether the store acknowledged a release",
            ),
            What::Suspended { .. } => (
                "suspended",
                "leadership is uncertain and has ended; it may resume under a new epoch within the grace",
            ),
            What::Resumed { .. } => ("resumed", "a new leadership began after a suspension"),
            What::AcquireFailed { .. } => {
                ("acquire_failed", "the store denied a claim; the holder, where the store can tell")
            }
            What::LeaderChanged { .. } => ("leader_changed", "somebody else leads, or nobody (null)"),
            What::Danger { .. } => {
                ("danger", "a renewal is overdue by half the time left until the work is told to stop")
            }
            What::ChildStarted { .. } => ("child_started", "COMMAND was started; its process id"),
            What::ChildExited { .. } => (
                "child_exited",
                "COMMAND and everything that it started have ended; its exit code, 128 + n for signal n",
            ),
            What::Error(_) => {
                ("error", "something went wrong; it ends a leadership only where another event says so")
            }
            What::Missed { .. } => {
                ("missed", "the reader was too slow: `count` events were dropped here; the state after them")
            }
            What::Stopped => ("stopped", "the candidate stopped"),
        }
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
            | What::ChildStarted { .. }
            | What::ChildExited { .. }
            | What::Error(_)
            | What::Missed { .. }
            | What::Stopped => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_and_every_reason_has_a_word_of_its_own() {
        let states = StateName::ALL.map(StateName::as_str);
        assert_eq!(states, ["stopped", "follower", "acquiring", "leader", "reconnecting", "releasing"]);
        let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        let all =
            ["deadline", "conflict", "connection", "health", "validation", "preempted", "admin", "refused"];
        assert_eq!(reasons, all);
        let meanings: std::collections::BTreeSet<_> =
            Reason::ALL.iter().map(|reason| reason.meaning()).collect();
        assert!(meanings.len() == all.len() && meanings.iter().all(|meaning| meaning.len() > 10));
    }

    #[test]
    fn a_leader_that_chose_or_was_asked_to_end_ends_as_planned() {
        let planned: Vec<&str> =
            Reason::ALL.iter().filter(|reason| reason.is_planned()).map(|reason| reason.as_str()).collect();
        assert_eq!(planned, ["health", "preempted", "admin"]);
    }
}
