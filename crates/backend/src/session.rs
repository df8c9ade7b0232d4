//! The two sessions of a process, and the statements on them.

use std::collections::HashSet;
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::time::Duration;

use bellwether_core::{CandidateId, ElectionName, Epoch, ErrorKind, Request, StoreError};

use crate::coalesce::Unanswered;
use crate::takeover::Condition;

/// The key of an election's lock, and of presence in it.
pub trait LockKey: Copy + Eq + Ord + Hash + Debug + Send + Sync + 'static {
    /// The key under which a presence session is present, as its heartbeat shows it.
    fn presence(self) -> Self;
}

/// How a statement failed.
#[derive(Clone, Debug)]
pub enum SessionFailure {
    /// The server reported an error, and the session goes on. The statement may have taken effect before it.
    Said(StoreError),
    /// The session has ended, or was closed because its answer was lost.
    Over(StoreError),
}

impl SessionFailure {
    /// The error, whatever became of the session.
    pub fn error(self) -> StoreError {
        match self {
            SessionFailure::Said(error) | SessionFailure::Over(error) => error,
        }
    }
}

impl From<Unanswered> for SessionFailure {
    fn from(why: Unanswered) -> SessionFailure {
        let error = |sentence| StoreError::new(ErrorKind::Unavailable, "session", sentence);
        match why {
            Unanswered::Miscounted => {
                SessionFailure::Said(error("the server answered with another number of rows than asked for"))
            }
            Unanswered::Abandoned => {
                SessionFailure::Over(error("whoever asked for all ended before it was answered"))
            }
        }
    }
}

/// What sessions tell each other through the server. Anybody can send any of these, so each is a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionNotice<K> {
    /// The lock was released.
    Released(K),
    /// The lock is about to be released, and is reserved for that candidate for this duration.
    Reserved(K, Duration, CandidateId),
    /// That candidate took the lock.
    Claimed(K, CandidateId),
    /// Something asked of the leader.
    Requested(K, Request),
}

/// One of the two sessions of a process. The *lock session* holds the locks, the *presence session* shows others what its process leads.
///
/// A statement is never abandoned: either its answer is read, or the session is thrown away. It ends within the `ttl` that it
/// is given, since after that its answer is of no use. Where a statement changes what the session holds, `lease` is how much silence
/// the server tolerates from then on before it ends the session.
pub trait Session: Send + Sync + 'static {
    /// The key of a lock.
    type Key: LockKey;
    /// How the server and the sender of a notice name a session.
    type Id: Copy + Eq + Ord + Hash + Debug + Display + Send + Sync + 'static;
    /// What the store remembers of a lock that it holds, for later statements.
    type Mark: Copy + Default + Debug + Send + Sync + 'static;

    /// How the server names it.
    fn id(&self) -> Self::Id;

    /// Whether it is known to have ended.
    fn is_over(&self) -> bool;

    /// Waits until it has ended, on either side.
    fn over(&self) -> impl Future<Output = ()> + Send;

    /// Closes it without waiting.
    fn throw_away(&self);

    /// A heartbeat. Returns the keys of all locks that the session holds, as of an instant after this call began.
    fn beat(&self, ttl: Duration) -> impl Future<Output = Result<HashSet<Self::Key>, StoreError>> + Send;

    /// Sends a notice to every session that listens, and returns when the server has accepted it.
    fn tell(
        &self,
        ttl: Duration,
        notice: &SessionNotice<Self::Key>,
    ) -> impl Future<Output = Result<(), SessionFailure>> + Send;

    /// On the lock session: tries to take these locks in one statement. Each lock comes with an epoch that was issued after the lock was
    /// granted.
    #[expect(
        clippy::type_complexity,
        reason = "an answer for each, which may be an error that concerns only that one"
    )]
    fn claim(
        &self,
        wanted: &[WantedLock<Self::Key, Self::Mark>],
        lease: Duration,
    ) -> impl Future<Output = Result<Vec<LockResult<Self::Id, Self::Mark>>, SessionFailure>> + Send;

    /// On the lock session: releases a lock and notifies everybody. Returns whether the session held it.
    fn unlock(
        &self,
        key: Self::Key,
        mark: Self::Mark,
        ttl: Duration,
        lease: Duration,
    ) -> impl Future<Output = Result<bool, SessionFailure>> + Send;

    /// On the lock session: makes sure that the lock is free, after an error left open whether it was taken.
    fn undo(&self, key: Self::Key, ttl: Duration) -> impl Future<Output = Result<(), SessionFailure>> + Send;

    /// On the presence session: becomes present in each election whose condition is met, in one statement.
    fn appear(
        &self,
        wanted: &[WantedPresence<Self::Key, Self::Id>],
        lease: Duration,
    ) -> impl Future<Output = Result<Vec<Presence>, SessionFailure>> + Send;

    /// On the presence session: ends presence in an election.
    fn leave(&self, key: Self::Key, ttl: Duration, lease: Duration) -> impl Future<Output = ()> + Send;

    /// On the presence session: reads who holds each of these locks.
    fn look(
        &self,
        keys: &[Self::Key],
    ) -> impl Future<Output = Result<Vec<Option<LockHolder<Self::Id>>>, StoreError>> + Send;
}

/// A lock that a candidate wants.
#[derive(Clone, Debug)]
pub struct WantedLock<K, Mark> {
    /// Its key.
    pub key: K,
    /// The election that it stands for.
    pub on: ElectionName,
    /// The candidate.
    pub id: CandidateId,
    /// How long a grant lasts without renewal.
    pub ttl: Duration,
    /// The mark of a lock that this session should hold already. It is not taken a second time: if it is held, it is granted under a
    /// new epoch, and else it is not granted.
    pub held: Option<Mark>,
}

/// The answer for one lock, or an error that concerns only this one.
pub type LockResult<Id, Mark> = Result<LockAnswer<Id, Mark>, StoreError>;

/// The answer to a claim of a lock.
#[derive(Clone, Debug)]
pub enum LockAnswer<Id, Mark> {
    /// This session holds it now.
    Granted(Epoch, Mark),
    /// Another session holds it.
    HeldBy(LockHolder<Id>),
    /// Another session held it, and released it before its holder could be read.
    JustFreed,
}

/// A request to become present.
#[derive(Clone, Debug)]
pub struct WantedPresence<K, Id> {
    /// The election's key.
    pub key: K,
    /// What the server must find first.
    pub condition: Condition,
    /// The session that must hold the lock, where that is not known yet.
    pub if_locked_by: Option<Id>,
    /// How long presence lasts without a heartbeat.
    pub ttl: Duration,
}

/// What the server found, and whether this session became present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    /// This session is present.
    pub present: bool,
    /// Others are present.
    pub others: bool,
    /// How long ago the server last ended sessions of its own accord, such as by a restart.
    pub quiet: Duration,
}

/// Who holds a lock, as the server shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder<Id> {
    /// The session.
    pub session: Id,
    /// What it calls itself.
    pub name: String,
    /// Whether that name is one that Bellwether gives.
    pub is_ours: bool,
    /// The candidate that it serves, if it names one.
    pub id: Option<CandidateId>,
    /// Whether its process is present. One that is not holds the lock without leading.
    pub leads: bool,
    /// Its ttl, where that is shown.
    pub ttl: Option<Duration>,
    /// How long it has been silent; `None` while it ends.
    pub silent: Option<Duration>,
    /// The epoch that it leads under, where that is shown.
    pub epoch: Option<Epoch>,
}
