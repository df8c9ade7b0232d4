//! What a candidate tells the outside: its state, why it lost a leadership, and its events.

use crate::words::words;
use crate::{Boot, CandidateId, Epoch, StoreError};

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

/// Something that happened to this candidate.
///
/// Deliberately exhaustive: whoever passes events on to users must not forget one.
#[derive(Clone, Debug)]
pub enum CoreEvent {
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
    /// Something went wrong. A leadership ends only where another event says so.
    Error(StoreError),
    /// The candidate stopped.
    Stopped,
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
