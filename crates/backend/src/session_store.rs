//! The least a store must offer whose locks belong to live sessions: a handful of statements on two sessions of a process.
//!
//! [`SessionLease`](crate::SessionLease) makes a [`Backend`](crate::Backend) of it: who may lead on a lock that came free, when a heartbeat
//! renews, in which order things are released, and which notices are believed are written once, there.
//!
//! ```text
//!             ┌── lock session: the locks of its elections, heartbeat, release ─┐   the server ends a session
//!  a process ─┤                                                                 ├── that holds anything after
//!             └── presence session: presence in what it leads, news, looks ─────┘   a ttl of silence
//! ```

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{Bid, Boot, Candidate, CandidateId, ElectionName, Epoch, Grant, Seen, StoreError};

use crate::session::{LockHolder, LockKey, LockResult, Session, WantedLock};
use crate::session_lease::Ear;
use crate::{Capabilities, Creation, Discarded, Finding, Followers, Fut, Past, Probing, once};

/// The two sessions of a process.
pub struct Sessions<S: SessionStore> {
    /// The lock session.
    pub lock: Arc<S::Session>,
    /// The presence session.
    pub presence: Arc<S::Session>,
}

/// The mark that a store keeps of a lock in hand.
pub type LockMark<S> = <<S as SessionStore>::Session as Session>::Mark;

/// How the server of a store names a session.
pub type SessionId<S> = <<S as SessionStore>::Session as Session>::Id;

/// What became of a lock that a store was asked for.
pub(crate) type LockResultOf<S> = LockResult<SessionId<S>, LockMark<S>>;

/// A lock that is asked of a store.
pub(crate) type WantedLockOf<S> = WantedLock<<S as SessionStore>::Key, LockMark<S>>;

/// How writing a leadership ended, in a store that keeps more than locks.
#[derive(Clone, Copy, Debug)]
pub enum Written<M> {
    /// Under this epoch.
    Done {
        /// Above everything before it.
        epoch: Epoch,
        /// Another mark, if the epoch is another.
        mark: M,
        /// The last leader had not released, by the store's record.
        unreleased: bool,
    },
    /// Not yet: a transaction that still relies on the last epoch prevents it.
    NotYet,
}

/// A store whose locks belong to sessions.
#[expect(unused_variables, reason = "the default of an optional method ignores what it is given")]
pub trait SessionStore: Send + Sync + Sized + 'static {
    /// The key of a lock.
    type Key: LockKey;
    /// Either session of a process.
    type Session: Session<Key = Self::Key>;

    /// The name used in errors and logs.
    fn name(&self) -> &'static str;

    /// What this store can and cannot do.
    fn capabilities(&self) -> Capabilities;

    /// The current instant on this machine's clock.
    fn now(&self) -> Boot;

    /// Sleeps for `span`.
    fn pause(&self, span: Duration) -> impl Future<Output = ()> + Send;

    /// Runs a task in the background.
    fn spawn(&self, task: Fut<'static, ()>);

    /// Runs a call to its end even if its caller is dropped: a claim that nobody waits for must not leave its lock behind. Returns an
    /// error if the call panicked.
    fn finish<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// The key of an election.
    ///
    /// # Errors
    /// When this store cannot hold that election.
    fn key(&self, on: &ElectionName) -> Result<Self::Key, StoreError>;

    /// Opens both sessions, on one and the same server. The presence session listens: what it hears goes to `ear`, in the order in which
    /// the server sent it and before the answer to anything that is asked later.
    fn open(&self, ear: Ear<Self>) -> impl Future<Output = Result<Sessions<Self>, StoreError>> + Send;

    /// Opens another presence session beside a lock session that goes on.
    fn open_presence(
        &self,
        beside: &Self::Session,
        ear: Ear<Self>,
    ) -> impl Future<Output = Result<Self::Session, StoreError>> + Send;

    /// Since when both sessions have stood, on a server that was not replaced meanwhile: an instant after they were opened.
    fn stood_since(&self, of: &Sessions<Self>) -> Boot;

    /// Begins to watch for the ends of others' sessions, until this lock session ends; [`Ear::other`] says whose.
    fn watch(&self, lock: &Arc<Self::Session>, ear: Ear<Self>) {}

    /// The lock session ended here; the server may still have it.
    fn lost(&self, lock: &Self::Session) {}

    /// A presence session ended here and stands for nobody's work any more: the server may forget it, too.
    fn end_presence(&self, through: &Self::Session, old: &Self::Session) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Ends the sessions of an earlier start of a candidate. Outside the guarantee.
    fn end_earlier(
        &self,
        through: &Self::Session,
        holder: &LockHolder<SessionId<Self>>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        async {
            let sentence = "this store cannot end the sessions of others";
            Err(StoreError::new(bellwether_core::ErrorKind::Unsupported, self.name(), sentence))
        }
    }

    /// The most elections that one process may hold.
    fn elections_max(&self, lock: &Self::Session) -> usize {
        usize::MAX
    }

    /// A candidate is about to claim: whether it has to stay away, as after it stepped down.
    fn admit(
        &self,
        through: &Sessions<Self>,
        on: &ElectionName,
        bid: &Bid,
    ) -> impl Future<Output = Result<Option<Seen>, StoreError>> + Send {
        async { Ok(None) }
    }

    /// Writes a leadership, whose lock and presence are ours, under `epoch` or a later one: above [`Bid::floor`].
    fn write(
        &self,
        through: &Sessions<Self>,
        claimed: Claimed<'_, Self>,
    ) -> impl Future<Output = Result<Written<LockMark<Self>>, StoreError>> + Send;

    /// Whether a leadership that could not be written can be now.
    fn is_writable(
        &self,
        through: &Sessions<Self>,
        on: &ElectionName,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        async { Ok(true) }
    }

    /// A leadership is about to be released.
    fn releasing(
        &self,
        through: &Sessions<Self>,
        on: &ElectionName,
        grant: &Grant,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// It was released, and this id stays away for `span`.
    fn cool_down(
        &self,
        through: &Sessions<Self>,
        on: &ElectionName,
        id: &CandidateId,
        span: Duration,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// What the store knows beyond who holds the lock.
    fn describe(
        &self,
        through: &Sessions<Self>,
        on: &ElectionName,
        holder: Option<SessionId<Self>>,
        seen: Seen,
    ) -> impl Future<Output = Result<Seen, StoreError>> + Send {
        async { Ok(seen) }
    }

    /// See [`Backend::followers`](crate::Backend::followers).
    fn followers(
        &self,
        through: &Sessions<Self>,
        on: &ElectionName,
    ) -> impl Future<Output = Result<Option<Followers>, StoreError>> + Send {
        async { Ok(None) }
    }

    /// A candidate has left the election.
    fn retired(&self, on: &ElectionName, who: &Candidate) {}

    /// See [`Backend::remember`](crate::Backend::remember).
    fn remember(
        &self,
        through: &Sessions<Self>,
        on: &ElectionName,
        past: &Past,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }

    /// See [`Backend::history`](crate::Backend::history).
    fn history(
        &self,
        through: &Sessions<Self>,
        on: &ElectionName,
    ) -> impl Future<Output = Result<Vec<Past>, StoreError>> + Send {
        async { Ok(Vec::new()) }
    }

    /// See [`Backend::elections`](crate::Backend::elections).
    fn elections(
        &self,
        through: &Sessions<Self>,
    ) -> impl Future<Output = Result<Vec<ElectionName>, StoreError>> + Send {
        async { Ok(Vec::new()) }
    }

    /// See [`Backend::create_once`](crate::Backend::create_once). Called only where the store claims it, with content that is fit.
    fn create_once(
        &self,
        through: &Sessions<Self>,
        name: &ElectionName,
        bytes: &[u8],
    ) -> impl Future<Output = Creation> + Send {
        async { Creation::Refused(once::unsupported(self.name())) }
    }

    /// See [`Backend::read_once`](crate::Backend::read_once). Called only where the store claims it.
    fn read_once(
        &self,
        through: &Sessions<Self>,
        name: &ElectionName,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, StoreError>> + Send {
        async { Err(once::unsupported(self.name())) }
    }

    /// See [`Backend::checkup`](crate::Backend::checkup).
    fn checkup(
        &self,
        through: &Sessions<Self>,
        probing: Probing<'_>,
    ) -> impl Future<Output = Result<Vec<Finding>, StoreError>> + Send {
        async { Ok(Vec::new()) }
    }

    /// See [`Backend::danger_discard`](crate::Backend::danger_discard).
    fn danger_discard(&self, on: &ElectionName) -> Discarded {
        // A lock that nobody has is nowhere.
        Discarded::Gone
    }

    /// Duplicates of what keeps this session open.
    #[cfg(unix)]
    fn crash_proof(&self, presence: &Self::Session) -> Vec<std::os::fd::OwnedFd> {
        Vec::new()
    }
}

/// A claim whose lock and presence this process holds.
pub struct Claimed<'a, S: SessionStore> {
    /// In what.
    pub on: &'a ElectionName,
    /// Its key.
    pub key: S::Key,
    /// For whom.
    pub bid: &'a Bid,
    /// As the lock came with it.
    pub epoch: Epoch,
    /// As the lock came with it.
    pub mark: LockMark<S>,
    /// The lease of the lock session.
    pub lease: Duration,
}
