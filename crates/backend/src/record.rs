//! What a register holds for one election.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_core::{CandidateId, Epoch, Holder, Incarnation, Pause, Request, Wall};

/// The record of an election: who holds it, since when by whose reckoning, and what is asked of them.
///
/// Every field but the holder may be missing: records written by others have no incarnation, no epoch, perhaps
/// no ttl. A record that cannot be read at all is [`Record::broken`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; `None` once released.
    pub holder: Option<Holder>,
    /// The epoch of this holder, or of the last one.
    pub epoch: Option<Epoch>,
    /// How long it holds without renewal, by the holder's own word.
    pub ttl: Option<Duration>,
    /// Rises with every claim and renewal, so that a change by somebody else is not taken for a sign of life. Every writer takes
    /// its own from its clock, so that a record in its name that it never wrote, a clone's, is not taken for its own.
    pub beat: u64,
    /// The boot of the machine that the holder runs on, where its death can be proven on that machine.
    pub boot_id: Option<String>,
    /// The holder's priority.
    pub priority: Option<i32>,
    /// When it was acquired, by the holder's wall clock: for readers.
    pub acquired: Option<Wall>,
    /// When it was last renewed, by the holder's wall clock: for readers.
    pub renewed: Option<Wall>,
    /// What is asked of the holder.
    pub request: Option<Request>,
    /// For whom the released record is kept, and for how long from when that was seen.
    pub reserved: Option<Reservation>,
    /// What is left of a pause, from when this record is first seen. It outlives leaderships: renewals and releases keep it.
    pub paused: Option<Pause>,
    /// What the holder wrote about itself.
    pub metadata: BTreeMap<String, String>,
    /// The bytes made no sense. It counts as held by an unknown for a whole ttl, and is then replaced.
    pub broken: bool,
}

/// A released record is kept for one candidate for a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Whom it is kept for.
    pub candidate: CandidateId,
    /// For how long.
    pub span: Duration,
}

impl Record {
    /// Bytes that are not a record.
    pub fn unreadable() -> Record {
        Record { broken: true, ..Record::default() }
    }

    /// Whether exactly this start of a candidate holds it, under this epoch.
    pub fn is_of(&self, incarnation: Incarnation, epoch: Epoch) -> bool {
        self.epoch == Some(epoch) && self.holder.as_ref().is_some_and(|h| h.incarnation == Some(incarnation))
    }

    /// Whether it keeps others out: held, or not understood.
    pub fn is_held(&self) -> bool {
        self.holder.is_some() || self.broken
    }

    /// Whether `other` shows a sign of life that this one did not: another holder, another epoch, another beat.
    /// Records of others have no beat, so there any difference counts.
    pub fn is_same_beat(&self, other: &Record) -> bool {
        // That of a clone has a beat, though it counts as somebody else's.
        let ours = self.beat > 0 || self.holder.as_ref().is_none_or(|h| h.incarnation.is_some());
        let native = self.epoch.is_some() && ours;
        native
            && !self.broken
            && !other.broken
            && self.holder == other.holder
            && self.epoch == other.epoch
            && self.beat == other.beat
    }
}
