//! What passes between an election and a store: bids, grants, observations, requests, and outcomes of calls.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::words::words;
use crate::{Boot, Candidate, CandidateId, Epoch, Incarnation, Paused, StoreError, Wall};

/// How a call to a store ended.
///
/// Treating one of these as another is how an election gets two leaders. Deliberately exhaustive: no caller may forget one.
#[derive(Clone, Debug)]
#[must_use]
pub enum Outcome<T> {
    /// Done, and acknowledged by the store.
    Done(T),
    /// Not done, because somebody or something else is in the way.
    Denied(Seen),
    /// Perhaps done, perhaps not, perhaps done later.
    Unknown(StoreError),
    /// Not done, and trying again cannot help.
    Refused(StoreError),
}

impl<T> Outcome<T> {
    /// Of a call that ended in this error: unknown if trying again can help, refused if not.
    pub fn failed(error: StoreError) -> Outcome<T> {
        if error.is_retryable() { Outcome::Unknown(error) } else { Outcome::Refused(error) }
    }

    /// The same outcome, with something else to show for what was done.
    pub fn map<U>(self, done: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Outcome::Done(value) => Outcome::Done(done(value)),
            Outcome::Denied(seen) => Outcome::Denied(seen),
            Outcome::Unknown(error) => Outcome::Unknown(error),
            Outcome::Refused(error) => Outcome::Refused(error),
        }
    }
}

/// A request to lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bid {
    /// Who wants to lead.
    pub who: Candidate,
    /// How long the grant lasts without renewal.
    pub ttl: Duration,
    /// The highest epoch that this candidate has seen in this election. The new epoch must be above it.
    pub floor: Epoch,
    /// A candidate may ask a leader of a smaller priority to hand over.
    pub priority: i32,
    /// Data that the candidate publishes about itself.
    pub metadata: BTreeMap<String, String>,
    /// How long this id stays away after it steps down, where the store remembers that.
    pub cooldown: Option<Duration>,
    /// Takes over the record of an earlier start of this id without proof that it is dead. The guarantee does not cover this.
    pub danger_reclaim: bool,
    /// The instant before the call: the grant counts from here.
    pub sent: Boot,
}

impl Bid {
    /// A bid with nothing but what every bid needs: no floor, priority 0, no metadata, no cooldown.
    pub fn new(who: Candidate, ttl: Duration, sent: Boot) -> Bid {
        Bid {
            who,
            ttl,
            floor: Epoch::ZERO,
            priority: 0,
            metadata: BTreeMap::new(),
            cooldown: None,
            danger_reclaim: false,
            sent,
        }
    }
}

/// The right to lead, as a store granted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The epoch of this leadership.
    pub epoch: Epoch,
    /// The start of the candidate that holds it.
    pub incarnation: Incarnation,
    /// How long it lasts from `counted_from`.
    pub ttl: Duration,
    /// The instant before the call that granted or renewed it; where one heartbeat renews many, the instant before the heartbeat.
    pub counted_from: Boot,
    /// Taken over on evidence of a crash: the last of the old leader's work may still be dying.
    pub after_crash: bool,
}

/// Who holds the lead according to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its id.
    pub id: CandidateId,
    /// The start of that candidate; `None` for a record that another program wrote, whose holder is never this candidate.
    pub incarnation: Option<Incarnation>,
}

impl Holder {
    /// Whether the holder is exactly this start of this candidate.
    pub fn is(&self, who: &Candidate) -> bool {
        self.incarnation == Some(who.incarnation)
    }
}

words! {
    /// What is known about the holder.
    #[derive(Default)]
    Proof {
        Record = "record": "a record names the holder; nothing more is known",
        Alive = "alive": "the holder was seen to renew, or its session is open",
        Dead = "dead": "the process *and its work* are gone, not merely silent",
        Released = "released": "the holder released the record",
        #[default]
        Absent = "absent": "there is no record",
    }
}

/// What an observation of an election shows. What the store cannot tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The holder; `None` when there is none.
    pub holder: Option<Holder>,
    /// The highest epoch that the store knows of.
    pub epoch: Option<Epoch>,
    /// The ttl in the record.
    pub ttl: Option<Duration>,
    /// What is known about the holder.
    pub proof: Proof,
    /// When the observer may try to take over, on its own clock; `None` where only a change can tell.
    pub free_at: Option<Boot>,
    /// How long the observer still has to stay away, after it stepped down.
    pub cooldown: Option<Duration>,
    /// The holder's priority.
    pub priority: Option<i32>,
    /// When the leadership began, by the holder's wall clock.
    pub acquired: Option<Wall>,
    /// When the leadership was last renewed, by the holder's wall clock.
    pub renewed: Option<Wall>,
    /// The candidate for which a released record is reserved.
    pub reserved_for: Option<CandidateId>,
    /// The pause in force, if there is one: nobody is elected before it ends.
    pub paused: Option<Box<Paused>>,
    /// Data that the holder publishes about itself.
    pub metadata: BTreeMap<String, String>,
}

impl Seen {
    /// No record, and none remembered: the election is free.
    pub fn nothing() -> Seen {
        Seen::default()
    }

    /// When the observer may try to lead: when what is in the way has run out and no pause is in force. `None` where only a change can tell.
    pub fn claimable_at(&self) -> Option<Boot> {
        let is_held = matches!(self.proof, Proof::Record | Proof::Alive);
        match &self.paused {
            Some(paused) if self.free_at.is_some() || !is_held => self.free_at.max(Some(paused.until)),
            _ => self.free_at,
        }
    }

    /// Whether the holder is exactly this candidate.
    pub fn is_held_by(&self, who: &Candidate) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.is(who))
    }

    /// The leader's id: the holder, unless it is known to be gone.
    pub fn leader(&self) -> Option<&CandidateId> {
        match self.proof {
            Proof::Record | Proof::Alive => self.holder.as_ref().map(|holder| &holder.id),
            Proof::Dead | Proof::Released | Proof::Absent => None,
        }
    }
}

/// How a leadership is released.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleaseOptions {
    /// Reserve the record for this candidate for a moment.
    pub reserve_for: Option<CandidateId>,
    /// Remember in the store that this id stays away for this long.
    pub cooldown: Option<Duration>,
}

/// A request to a leader, through the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The leadership that it is meant for; later ones ignore it.
    pub epoch: Epoch,
    /// What is asked.
    pub what: Ask,
}

/// What can be asked of a leader.
///
/// Deliberately exhaustive: a store must be able to write and read every one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Step down; hand over to a candidate if one is named.
    StepDown {
        /// The successor.
        to: Option<CandidateId>,
    },
    /// Step down later. Another such request under the same epoch replaces this one.
    StepDownLater {
        /// The successor, if one is named.
        to: Option<CandidateId>,
        /// How much longer to lead, by the leader's own clock, from when it hears of this or begins to lead.
        after: Duration,
    },
    /// Hand over to a candidate of a higher priority.
    Preempt {
        /// Who asks.
        by: CandidateId,
        /// Its priority.
        priority: i32,
    },
}

/// News from a store, without a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Signal {
    /// The record changed, or what is known about its holder.
    Changed(Seen),
    /// Somebody sent a request to the leader.
    Requested(Request),
    /// The connection is silent: the leader leads on until its deadline.
    Doubt,
    /// The session has ended, and its grants with it.
    Gone,
    /// The connection is back: observe before acting.
    Restored,
}
