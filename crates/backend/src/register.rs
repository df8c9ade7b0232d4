//! The least a store must offer: a compare-and-set register per election, and news of its changes.

use std::pin::Pin;

use bellwether_core::{
    Bid, Candidate, Clock, ElectionName, Epoch, ErrorKind, Incarnation, Outcome, StoreError,
};
use futures_util::Stream;

use crate::{Capabilities, Discarded, Finding, Past, Probing, Record};

/// A store that is nothing but a register: load, write at a version, tell of changes.
///
/// [`Lease`](crate::Lease) makes a [`Backend`](crate::Backend) of it: claim, renew, release, expiry, epochs,
/// priority, requests and cooldown are written once, there.
#[expect(unused_variables, reason = "the default of an optional method ignores what it is given")]
pub trait Register: Send + Sync + 'static {
    /// What a write is compared with. Grows with every write of the same register, unless the store was
    /// rolled back.
    type Version: Clone + Ord + std::fmt::Debug + Send + Sync + 'static;

    /// The name used in errors and logs.
    fn name(&self) -> &'static str;

    /// What this store can and cannot do.
    fn capabilities(&self) -> Capabilities;

    /// The record as it is now: never from a replica that may be behind.
    fn load(
        &self,
        on: &ElectionName,
    ) -> impl Future<Output = Result<Found<Self::Version>, StoreError>> + Send;

    /// Replaces the record that has version `at`; `None` creates it where there is none. There is no delete.
    fn write(
        &self,
        on: &ElectionName,
        at: Option<&Self::Version>,
        new: &Record,
    ) -> impl Future<Output = Write<Self::Version>> + Send;

    /// From now on, [`changes`](Register::changes) tells of this election. Not called again before
    /// [`unfollow`](Register::unfollow).
    fn follow(&self, on: &ElectionName);

    /// Changes of this election are no longer wanted.
    fn unfollow(&self, on: &ElectionName);

    /// News of what is followed. May repeat itself and may be late; what it shows is sorted out by
    /// [`Observations`](crate::Observations). Taken once, and again after [`change_runtime`](Register::change_runtime).
    fn changes(&self) -> Changes<Self::Version>;

    /// See [`Backend::change_runtime`](crate::Backend::change_runtime).
    ///
    /// # Errors
    /// When what this store needs ended with that runtime.
    fn change_runtime(&self) -> Result<(), StoreError> {
        Err(crate::backend::ended_with_its_runtime(self.name()))
    }

    /// The epoch for a claim that replaces `replaced`: at least `least`, and above every epoch that was ever
    /// issued for this election as far as the store can know, even if the record has gone.
    fn epoch(
        &self,
        on: &ElectionName,
        replaced: Option<(&Record, &Self::Version)>,
        least: Epoch,
    ) -> impl Future<Output = Result<Epoch, StoreError>> + Send;

    /// A candidate is about to claim. Refuses what this store cannot do for it before anything is written, and learns what it
    /// will ask for. Returns at once.
    ///
    /// # Errors
    /// When this candidate can never lead this election here.
    fn admit(&self, on: &ElectionName, bid: &Bid) -> Result<(), StoreError> {
        Ok(())
    }

    /// A claim was denied, and its candidate follows. Checks whether it could lead later, such as whether it has the right to write.
    /// Writes nothing.
    ///
    /// # Errors
    /// When this candidate could never lead this election here. A temporary failure is no error.
    fn rehearse(&self, on: &ElectionName) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }

    /// Why changes of this election, which is followed, are not announced at the moment; `None` where they are, or where nothing
    /// is known. Returns at once.
    fn unwatched(&self, on: &ElectionName) -> Option<StoreError> {
        None
    }

    /// What is known about the holder's life beyond the record itself. Returns at once.
    fn life(&self, on: &ElectionName, record: &Record) -> Life {
        Life::Unknown
    }

    /// Whether a record that [`load`](Register::load) has just not found can be one that the store itself took away because
    /// it had run out, rather than one that somebody removed. Returns at once.
    fn takes_away(&self, on: &ElectionName) -> bool {
        false
    }

    /// This candidate has left the election: release what proved that it was alive.
    fn retire(&self, on: &ElectionName, who: Incarnation) {}

    /// The elections that the store can list.
    fn elections(&self) -> impl Future<Output = Result<Vec<ElectionName>, StoreError>> + Send;

    /// A small thing kept beside the lease, with its version. Read only where [`Capabilities::history`],
    /// [`Capabilities::cooldown`] or [`Capabilities::create_once`] says that the store keeps such notes.
    fn read_note(
        &self,
        on: &ElectionName,
        note: &Note,
    ) -> impl Future<Output = Result<FoundNote, StoreError>> + Send {
        async { Ok(None) }
    }

    /// Replaces the note that has version `at`; `None` creates it. Each note is compare-and-set by itself.
    fn write_note(
        &self,
        on: &ElectionName,
        note: &Note,
        at: Option<u64>,
        bytes: &[u8],
    ) -> impl Future<Output = Write<u64>> + Send {
        let sentence = "this store keeps neither history nor cooldowns";
        async move { Write::Refused(StoreError::new(ErrorKind::Unsupported, self.name(), sentence)) }
    }

    /// A leadership has begun here, or it has ended where [`Past::until`] says so. For a store that tells others who leads in more
    /// ways than by the record. Best effort: nothing depends on it, and it ends in bounded time.
    fn announce(&self, on: &ElectionName, past: &Past) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// See [`Backend::checkup`](crate::Backend::checkup); the clock is for measuring.
    fn checkup(&self, probing: Probing<'_>, clock: &dyn Clock) -> impl Future<Output = Vec<Finding>> + Send {
        async { Vec::new() }
    }

    /// See [`Backend::danger_discard`](crate::Backend::danger_discard).
    fn danger_discard(
        &self,
        on: &ElectionName,
    ) -> impl Future<Output = Result<Discarded, StoreError>> + Send {
        async move { Ok(Discarded::Remains(format!("the released record of {on}"))) }
    }

    /// Duplicates of what proves that this candidate lives.
    #[cfg(unix)]
    fn crash_proof(&self, on: &ElectionName, who: &Candidate) -> Vec<std::os::fd::OwnedFd> {
        Vec::new()
    }
}

/// What is known about the life of a record's holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Nothing.
    Unknown,
    /// The process is there; it may be stopped.
    Alive,
    /// The process is proven to be dead, and its work with it.
    Dead,
}

/// What a register holds for an election: the record and its version, or nothing.
pub type Found<V> = Option<(Record, V)>;

/// How a write ended.
#[derive(Clone, Debug)]
#[must_use]
pub enum Write<V> {
    /// Acknowledged; the record now has this version.
    Done(V),
    /// The record has another version. Certainly not written.
    Conflict,
    /// Perhaps written, perhaps not, perhaps later.
    Unknown(StoreError),
    /// Certainly not written, and trying again will not help.
    Refused(StoreError),
}

impl<V> Write<V> {
    /// Of a write that ended in this error before it was sent, or without an answer: unknown if trying again can help, refused if not.
    pub fn failed(error: StoreError) -> Write<V> {
        if error.is_retryable() { Write::Unknown(error) } else { Write::Refused(error) }
    }

    /// How a call ends whose write ended so; `None` if the record has to be looked at again.
    pub(crate) fn outcome(self) -> Option<Outcome<V>> {
        match self {
            Write::Done(version) => Some(Outcome::Done(version)),
            Write::Conflict => None,
            Write::Unknown(error) => Some(Outcome::Unknown(error)),
            Write::Refused(error) => Some(Outcome::Refused(error)),
        }
    }

    /// The same, with another version for what was written.
    pub fn map<U>(self, version: impl FnOnce(V) -> U) -> Write<U> {
        match self {
            Write::Done(done) => Write::Done(version(done)),
            Write::Conflict => Write::Conflict,
            Write::Unknown(error) => Write::Unknown(error),
            Write::Refused(error) => Write::Refused(error),
        }
    }
}

/// A stream of changes.
pub type Changes<V> = Pin<Box<dyn Stream<Item = Change<V>> + Send>>;

/// News from a register.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "made once and moved once; a box would cost more than it spares"
)]
pub enum Change<V> {
    /// The record is now this; `None` when it was removed.
    Now(ElectionName, Found<V>),
    /// Something about it changed: load it.
    Look(ElectionName),
    /// The connection fell silent.
    Doubt,
    /// The connection is back. The store may have been replaced or restored since.
    Restored,
}

/// A note's bytes and their version, or nothing.
pub type FoundNote = Option<(Vec<u8>, u64)>;

/// Which of the small things kept beside a lease.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note {
    /// The last leaderships.
    History,
    /// Until when this id stays away.
    Cooldown(bellwether_core::CandidateId),
    /// A create-once note, which lies apart from elections: see [`Backend::create_once`](crate::Backend::create_once).
    ///
    /// Only where [`Capabilities::create_once`] says so. A store claims that if it keeps the note for good, whatever becomes of an
    /// election of the same name, and if no failure to read it is ever taken for its absence.
    Once,
}
