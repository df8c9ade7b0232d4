//! What passes between the election and a store: bids, grants, what was seen, and how calls end.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Boot, Candidate, CandidateId, Epoch, Error, Incarnation, Wall};

/// How a call to a store ended.
///
/// There are more than two answers, and treating one as another is how two leaders come about.
#[derive(Clone, Debug)]
#[must_use]
pub enum Outcome<T> {
    /// Done, and acknowledged by the store.
    Done(T),
    /// Certainly not done: somebody or something else is in the way, as seen here.
    Denied(Seen),
    /// Perhaps done, perhaps not, perhaps later.
    Unknown(Error),
    /// Certainly not done, and trying again will not help.
    Refused(Error),
}

/// A request to lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bid {
    /// Who wants to lead.
    pub who: Candidate,
    /// How long the grant is to last without renewal.
    pub ttl: Duration,
    /// The highest epoch this candidate has ever seen in this election: the new one must be above it.
    pub floor: Epoch,
    /// Written for others to compare: the greater may ask the smaller to hand over.
    pub priority: i32,
    /// Written for readers.
    pub metadata: BTreeMap<String, String>,
    /// For how long this id stays away after it stepped down, where the store remembers it.
    pub cooldown: Option<Duration>,
    /// Take the record of an earlier start of this id without proof of its death. Outside the guarantee.
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
    /// The number of this leadership.
    pub epoch: Epoch,
    /// Whose it is.
    pub incarnation: Incarnation,
    /// How long it lasts from `counted_from`.
    pub ttl: Duration,
    /// The instant before the call that brought or renewed it; where a session's heartbeat renews many, before that left.
    pub counted_from: Boot,
    /// It was taken on evidence of a crash, so the last of the old leader's work may still be dying.
    pub after_crash: bool,
}

/// Who holds the lead according to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its id.
    pub id: CandidateId,
    /// Which start of it; `None` for a foreign record, whose holder is never taken for oneself.
    pub incarnation: Option<Incarnation>,
}

impl Holder {
    /// Whether this is exactly that start of that candidate.
    pub fn is(&self, who: &Candidate) -> bool {
        self.incarnation == Some(who.incarnation)
    }
}

/// What is known about the holder's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proof {
    /// A record names it; nothing more is known.
    Record,
    /// It was seen to renew, or its session is held.
    Alive,
    /// The process *and its work* are gone, not merely silent.
    Dead,
    /// It let go by itself.
    Released,
    /// There is no record.
    Absent,
}

/// What a look at an election showed. What a store cannot tell is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Who holds it; `None` when nobody does.
    pub holder: Option<Holder>,
    /// The highest epoch that the store knows of.
    pub epoch: Option<Epoch>,
    /// The ttl in the record.
    pub ttl: Option<Duration>,
    /// What is known about the holder's life.
    pub proof: Proof,
    /// When, on the looker's own clock, it may try to take over; `None` where only a change can tell.
    pub free_at: Option<Boot>,
    /// This candidate itself stepped down and is to stay away for so long.
    pub cooldown: Option<Duration>,
    /// The holder's priority.
    pub priority: Option<i32>,
    /// When it was acquired, by the holder's wall clock.
    pub acquired: Option<Wall>,
    /// When it was last renewed, by the holder's wall clock.
    pub renewed: Option<Wall>,
    /// For whom a released record is being kept.
    pub reserved_for: Option<CandidateId>,
    /// What the holder wrote about itself.
    pub metadata: BTreeMap<String, String>,
}

impl Seen {
    /// No record, and none remembered: free at once.
    pub fn nothing() -> Seen {
        Seen {
            holder: None,
            epoch: None,
            ttl: None,
            proof: Proof::Absent,
            free_at: None,
            cooldown: None,
            priority: None,
            acquired: None,
            renewed: None,
            reserved_for: None,
            metadata: BTreeMap::new(),
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

/// How a leadership is let go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parting {
    /// Keep the record for this candidate for a moment.
    pub reserve_for: Option<CandidateId>,
    /// Remember in the store that this id stays away for so long.
    pub cooldown: Option<Duration>,
}

/// Something asked of the leader through the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The leadership it is meant for; a later one is not touched.
    pub epoch: Epoch,
    /// What is asked.
    pub what: Ask,
}

/// What can be asked of a leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Step down, and hand over to that candidate if one is named.
    StepDown {
        /// The candidate that is to follow.
        to: Option<CandidateId>,
    },
    /// Make room for a candidate of a higher priority.
    Preempt {
        /// Who asks.
        by: CandidateId,
        /// Its priority.
        priority: i32,
    },
}

/// News from the store that nobody asked for.
#[derive(Clone, Debug)]
pub enum Signal {
    /// The record changed, or what is known of its holder did.
    Changed(Seen),
    /// Somebody asks something of the leader.
    Requested(Request),
    /// A queue granted the lead, unasked.
    Granted(Grant),
    /// The connection fell silent: lead on until the deadline.
    Doubt,
    /// The session is over, and every grant of it with it.
    Gone,
    /// The connection is back: look before acting.
    Restored,
}
