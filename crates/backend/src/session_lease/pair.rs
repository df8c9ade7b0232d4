//! The two sessions of a process, which stand and fall together, and the locks that they hold.
//!
//! Locks are re-entrant: a server grants one to a session that already has it. So who of this process has it is known here, and only one call
//! at a time works on an election ([`Pair::turn`]).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bellwether_core::{Boot, Candidate, CandidateId, Grant};
use tokio::sync::{Notify, OwnedMutexGuard};

use super::claiming::{ClaimsUnderWay, Room};
use super::heartbeat::Heartbeats;
use crate::coalesce::Coalesce;
use crate::lock;
use crate::session::{Presence, SessionFailure, WantedPresence};
use crate::session_store::{LockMark, LockResultOf, SessionId, SessionStore, Sessions, WantedLockOf};
use crate::takeover::Taken;

/// What became of a lock that a pair has.
#[derive(Clone, Debug)]
pub(super) struct Hold<M> {
    pub(super) ttl: Duration,
    pub(super) mark: M,
    pub(super) stage: ClaimStage,
}

/// How far the claim of a lock in hand has come.
#[derive(Clone, Debug)]
pub(super) enum ClaimStage {
    /// The last leader may still believe.
    Waiting(Taken),
    /// Nobody believes any more, but the store cannot write the leadership yet. Given up if nobody asks again until then.
    Unwritten { until: Boot, after_crash: Option<bool> },
    /// It is led by that candidate. The grant counts from when the heartbeat left that answered the last renewal.
    Led(CandidateId, Grant),
}

impl<M> Hold<M> {
    /// Until when somebody is waited for; `None` once it is led.
    pub(super) fn waits_until(&self) -> Option<Boot> {
        match self.stage {
            ClaimStage::Waiting(taken) => Some(taken.until()),
            ClaimStage::Unwritten { until, .. } => Some(until),
            ClaimStage::Led(..) => None,
        }
    }

    /// Whether it is led by this start of a candidate.
    pub(super) fn is_led_by(&self, who: &Candidate) -> bool {
        matches!(&self.stage, ClaimStage::Led(_, grant) if grant.incarnation == who.incarnation)
    }

    /// Whether it is led under exactly that grant.
    pub(super) fn is(&self, grant: &Grant) -> bool {
        matches!(&self.stage, ClaimStage::Led(_, led)
            if led.incarnation == grant.incarnation && led.epoch == grant.epoch)
    }
}

/// Both sessions.
pub(super) struct Pair<S: SessionStore> {
    pub(super) lock: Arc<S::Session>,
    presence: Mutex<Arc<S::Session>>,
    holds: Mutex<HashMap<S::Key, Hold<LockMark<S>>>>,
    turns: Mutex<HashMap<S::Key, Arc<tokio::sync::Mutex<()>>>>,
    claiming: ClaimsUnderWay<S::Key>,
    /// A lock was taken that is not led yet.
    pub(super) waits: Notify,
    pub(super) heartbeats: Heartbeats<S::Key>,
    /// Each answered with whether presence came with the lock.
    pub(super) claims: Coalesce<WantedLockOf<S>, (LockResultOf<S>, bool), SessionFailure>,
    pub(super) appearances: Coalesce<WantedPresence<S::Key, SessionId<S>>, Presence, SessionFailure>,
}

impl<S: SessionStore> Pair<S> {
    pub(super) fn new(sessions: Sessions<S>) -> Pair<S> {
        Pair {
            lock: sessions.lock,
            presence: Mutex::new(sessions.presence),
            holds: Mutex::default(),
            turns: Mutex::default(),
            claiming: ClaimsUnderWay::default(),
            waits: Notify::new(),
            heartbeats: Heartbeats::default(),
            claims: Coalesce::default(),
            appearances: Coalesce::default(),
        }
    }

    pub(super) fn presence(&self) -> Arc<S::Session> {
        Arc::clone(&lock(&self.presence))
    }

    /// The new one is present nowhere: only a renewal says that this process still leads, and the old one may have ended because
    /// nobody renewed.
    pub(super) fn replace_presence(&self, new: S::Session) {
        *lock(&self.presence) = Arc::new(new);
        self.heartbeats.forget();
    }

    pub(super) fn sessions(&self) -> Sessions<S> {
        Sessions { lock: Arc::clone(&self.lock), presence: self.presence() }
    }

    pub(super) fn hold(&self, key: S::Key) -> Option<Hold<LockMark<S>>> {
        self.holds().get(&key).cloned()
    }

    pub(super) fn put(&self, key: S::Key, hold: Hold<LockMark<S>>) {
        let waits = hold.waits_until().is_some();
        self.holds().insert(key, hold);
        if waits {
            self.waits.notify_one();
        }
    }

    pub(super) fn remove(&self, key: S::Key) {
        self.holds().remove(&key);
    }

    pub(super) fn set_mark(&self, key: S::Key, mark: LockMark<S>) {
        if let Some(hold) = self.holds().get_mut(&key) {
            hold.mark = mark;
        }
    }

    /// The mark of a lock in hand.
    pub(super) fn mark(&self, key: S::Key) -> LockMark<S> {
        self.holds().get(&key).map(|hold| hold.mark).unwrap_or_default()
    }

    pub(super) fn is_led(&self, key: S::Key, grant: &Grant) -> bool {
        self.holds().get(&key).is_some_and(|hold| hold.is(grant))
    }

    /// A heartbeat answers an election once: whoever asks again wants to know what has become of it since.
    pub(super) fn renewed(&self, key: S::Key, left: Boot) {
        if let Some(Hold { stage: ClaimStage::Led(_, grant), .. }) = self.holds().get_mut(&key) {
            grant.counted_from = left;
        }
    }

    /// When the heartbeat left that answered its last renewal.
    pub(super) fn last_renewed(&self, key: S::Key) -> Boot {
        match self.holds().get(&key).map(|hold| &hold.stage) {
            Some(ClaimStage::Led(_, grant)) => grant.counted_from,
            _ => Boot::default(),
        }
    }

    /// All of them, by their keys: what is done about them must not depend on chance, or a simulated world could not be repeated.
    pub(super) fn every(&self) -> Vec<(S::Key, Hold<LockMark<S>>)> {
        let mut every: Vec<_> = self.holds().iter().map(|(key, hold)| (*key, hold.clone())).collect();
        every.sort_unstable_by_key(|(key, _)| *key);
        every
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.holds().values().any(|hold| hold.waits_until().is_some())
    }

    /// The longest ttl of what is held.
    pub(super) fn longest_ttl(&self) -> Option<Duration> {
        self.holds().values().map(|hold| hold.ttl).max()
    }

    /// The lease of a session that holds what is held, what is being claimed, and this.
    pub(super) fn lease_with(&self, ttl: Duration) -> Duration {
        self.claiming.longest_ttl(None).max(self.longest_ttl().unwrap_or_default()).max(ttl)
    }

    /// The lease of a session that holds what is held and what is being claimed, but for this; zero for none.
    ///
    /// Claims under way count: the server may have granted one whose answer nobody here has read yet. A release that left it out would take
    /// the lease off the session that has the new lock, and nobody would end that session when its process is gone.
    pub(super) fn lease_without(&self, key: S::Key) -> Duration {
        // First, so that one which just became a lock counts twice rather than not at all.
        let claimed = self.claiming.longest_ttl(Some(key));
        let holds = self.holds();
        let others = holds.iter().filter(|(other, _)| **other != key);
        others.map(|(_, hold)| hold.ttl).max().unwrap_or_default().max(claimed)
    }

    /// One call at a time for each election.
    pub(super) async fn turn(&self, key: S::Key) -> OwnedMutexGuard<()> {
        self.turn_of(key).lock_owned().await
    }

    /// The turn, unless somebody has it.
    pub(super) fn try_turn(&self, key: S::Key) -> Option<OwnedMutexGuard<()>> {
        self.turn_of(key).try_lock_owned().ok()
    }

    fn turn_of(&self, key: S::Key) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(lock(&self.turns).entry(key).or_default())
    }

    /// Room for one more lock, kept until it is dropped; waits for claims under way that may need it. `None` if `most` are held.
    pub(super) async fn room(&self, most: usize, key: S::Key, ttl: Duration) -> Option<Room<'_, S::Key>> {
        self.claiming.room(most, (key, ttl), || self.holds().len()).await
    }

    fn holds(&self) -> MutexGuard<'_, HashMap<S::Key, Hold<LockMark<S>>>> {
        lock(&self.holds)
    }
}
