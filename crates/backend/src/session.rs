//! The two sessions of a process, and the statements on them.

use std::collections::HashSet;
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::time::Duration;

use bellwether_core::{CandidateId, ElectionName, Epoch, Error, Request};

use crate::takeover::Condition;

/// The key of an election's lock, and of presence in it.
pub trait LockKey: Copy + Eq + Ord + Hash + Debug + Send + Sync + 'static {
    /// The key under which a [`PresenceSession`] is present, as its heartbeat shows it.
    fn presence(self) -> Self;
}

/// How a statement failed.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The server reported an error, and the session goes on. The statement may have taken effect before it.
    Said(Error),
    /// The session is over, or was given up because its answer is lost.
    Over(Error),
}

impl Failure {
    /// The error, whatever became of the session.
    pub fn error(self) -> Error {
        match self {
            Failure::Said(error) | Failure::Over(error) => error,
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

/// One of the two sessions of a process.
///
/// A statement is never abandoned: either its answer is read, or the session is thrown away. It ends within the `ttl` that it
/// is given, at which nobody believes in its answer any more.
pub trait Session: Send + Sync + 'static {
    /// The key of a lock.
    type Key: LockKey;
    /// How the server and the sender of a notice name a session.
    type Id: Copy + Eq + Ord + Hash + Debug + Display + Send + Sync + 'static;

    /// How the server names it.
    fn id(&self) -> Self::Id;

    /// Whether it is known to be over.
    fn is_over(&self) -> bool;

    /// Waits until it is over, whoever ended it.
    fn over(&self) -> impl Future<Output = ()> + Send;

    /// Closes it, without waiting for anything.
    fn throw_away(&self);

    /// A heartbeat: everything that the session holds, as of an instant after this was called.
    fn beat(&self, ttl: Duration) -> impl Future<Output = Result<HashSet<Self::Key>, Error>> + Send;

    /// Tells every session that listens; ends when that is done.
    fn tell(
        &self,
        ttl: Duration,
        notice: &SessionNotice<Self::Key>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// The session that holds the locks.
pub trait LockSession: Session {
    /// What the store keeps of a lock in hand, for the statements that follow.
    type Mark: Copy + Default + Debug + Send + Sync + 'static;

    /// Tries these locks, in one statement. Whoever gets one gets an epoch that was issued after the lock was granted. `lease` is the
    /// silence after which the server ends the session from now on, if it got any.
    #[expect(
        clippy::type_complexity,
        reason = "an answer for each, which may be an error that concerns only that one"
    )]
    fn claim(
        &self,
        wanted: &[WantedLock<Self::Key>],
        lease: Duration,
    ) -> impl Future<Output = Result<Vec<LockResult<Self::Id, Self::Mark>>, Failure>> + Send;

    /// A new epoch for a lock that this session has; `None` if it does not have it.
    fn claim_again(
        &self,
        wanted: &WantedLock<Self::Key>,
        lease: Duration,
        mark: Self::Mark,
    ) -> impl Future<Output = Result<Option<(Epoch, Self::Mark)>, Failure>> + Send;

    /// Lets go of a lock, and tells everybody. `lease` is for what is left. True if it had it.
    fn unlock(
        &self,
        key: Self::Key,
        mark: Self::Mark,
        ttl: Duration,
        lease: Duration,
    ) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// After an error nobody knows whether a lock was taken: now it is not.
    fn undo(&self, key: Self::Key, ttl: Duration) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// The session that shows others that its process leads.
pub trait PresenceSession: Session {
    /// Becomes present wherever the condition is met, in one statement. `lease` as for [`LockSession::claim`].
    fn appear(
        &self,
        wanted: &[WantedPresence<Self::Key, Self::Id>],
        lease: Duration,
    ) -> impl Future<Output = Result<Vec<Presence>, Failure>> + Send;

    /// Is present no more. `lease` is for what is left.
    fn leave(&self, key: Self::Key, ttl: Duration, lease: Duration) -> impl Future<Output = ()> + Send;

    /// Who holds these locks: an answer for each.
    fn look(
        &self,
        keys: &[Self::Key],
    ) -> impl Future<Output = Result<Vec<Option<LockHolder<Self::Id>>>, Error>> + Send;
}

/// A lock that is asked for.
#[derive(Clone, Debug)]
pub struct WantedLock<K> {
    /// Which.
    pub key: K,
    /// Whose.
    pub on: ElectionName,
    /// By whom.
    pub id: CandidateId,
    /// For how long without a renewal.
    pub ttl: Duration,
}

/// What became of a lock that was asked for, or an error that concerns only this one.
pub type LockResult<Id, Mark> = Result<LockAnswer<Id, Mark>, Error>;

/// What became of a lock that was asked for.
#[derive(Clone, Debug)]
pub enum LockAnswer<Id, Mark> {
    /// It is ours.
    Granted(Epoch, Mark),
    /// Somebody else has it.
    HeldBy(LockHolder<Id>),
    /// Somebody else had it, and let go before it could be told who.
    JustFreed,
}

/// Presence that is asked for.
#[derive(Clone, Debug)]
pub struct WantedPresence<K, Id> {
    /// In what.
    pub key: K,
    /// What the server has to find.
    pub condition: Condition,
    /// And that this session has the lock, where that is not known yet.
    pub if_locked_by: Option<Id>,
    /// For how long without a heartbeat.
    pub ttl: Duration,
}

/// What the server found, and whether this session is present by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    /// It is present.
    pub present: bool,
    /// Others are present.
    pub others: bool,
    /// For how long the server has not ended sessions of its own accord.
    pub quiet: Duration,
}

/// Who holds a lock, as the server shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder<Id> {
    /// The session.
    pub session: Id,
    /// What it calls itself.
    pub name: String,
    /// Whether it is one of ours, by that name.
    pub is_ours: bool,
    /// The candidate that it serves, if it names one.
    pub id: Option<CandidateId>,
    /// Whether its process is present: else it holds the lock and does not lead.
    pub leads: bool,
    /// Its ttl, where that is shown.
    pub ttl: Option<Duration>,
    /// For how long it has been silent, unless it is just ending.
    pub silent: Option<Duration>,
    /// The epoch that it leads under, where that is shown.
    pub epoch: Option<Epoch>,
}
