//! What this process holds on one session, election by election.
//!
//! Advisory locks are re-entrant: the server grants one to a session that already has it. So who of this process has it is
//! known here, and only one call at a time works on an election ([`Slots::turn`]).

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether_core::{Boot, Candidate, CandidateId, Epoch, Grant};
use tokio::sync::{Notify, OwnedMutexGuard};

use crate::Keys;
use crate::names::{self, Lease};

/// What became of a lock that this session has.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    /// Ours, and its last leader may still believe: nobody leads until then.
    Waiting { until: Boot, ttl: Duration, mark: i64 },
    /// Ours, and nobody believes any more, but a user's transaction keeps the row. Given up if nobody asks again until then.
    Fenced { until: Boot, ttl: Duration, mark: i64, after_crash: Option<bool> },
    /// Led, or to be led, under this epoch.
    Held { who: Candidate, epoch: Epoch, ttl: Duration, mark: i64 },
}

impl Slot {
    pub(crate) fn ttl(&self) -> Duration {
        match self {
            Slot::Waiting { ttl, .. } | Slot::Fenced { ttl, .. } | Slot::Held { ttl, .. } => *ttl,
        }
    }

    /// The lock that shows its epoch, or 0.
    pub(crate) fn mark(&self) -> i64 {
        match self {
            Slot::Waiting { mark, .. } | Slot::Fenced { mark, .. } | Slot::Held { mark, .. } => *mark,
        }
    }

    /// Until when somebody is waited for; `None` once it is led.
    pub(crate) fn until(&self) -> Option<Boot> {
        match self {
            Slot::Waiting { until, .. } | Slot::Fenced { until, .. } => Some(*until),
            Slot::Held { .. } => None,
        }
    }

    /// Whether this is exactly that grant.
    pub(crate) fn is(&self, grant: &Grant) -> bool {
        match self {
            Slot::Held { who, epoch, .. } => who.incarnation == grant.incarnation && *epoch == grant.epoch,
            Slot::Waiting { .. } | Slot::Fenced { .. } => false,
        }
    }
}

/// All of one session.
#[derive(Default)]
pub(crate) struct Slots {
    all: Mutex<HashMap<Keys, Slot>>,
    /// When the beat left that answered the last renewal of each.
    renewed: Mutex<HashMap<Keys, Boot>>,
    turns: Mutex<HashMap<Keys, Arc<tokio::sync::Mutex<()>>>>,
    /// Claims under way, each of which may become a lock.
    claiming: Mutex<usize>,
    claimed: Notify,
    ids: Mutex<BTreeSet<CandidateId>>,
    lease: Mutex<Option<Lease>>,
}

impl Slots {
    pub(crate) fn of(&self, keys: Keys) -> Option<Slot> {
        self.all().get(&keys).cloned()
    }

    pub(crate) fn put(&self, keys: Keys, slot: Slot) {
        self.all().insert(keys, slot);
    }

    pub(crate) fn remove(&self, keys: Keys) {
        self.all().remove(&keys);
        lock(&self.renewed).remove(&keys);
    }

    /// A beat answers an election once: whoever asks again wants to know what has become of it since.
    pub(crate) fn renewed(&self, keys: Keys, left: Boot) {
        lock(&self.renewed).insert(keys, left);
    }

    /// When the beat left that answered its last renewal.
    pub(crate) fn last_renewed(&self, keys: Keys) -> Boot {
        lock(&self.renewed).get(&keys).copied().unwrap_or_default()
    }

    /// Room for one more, kept until it is dropped; waits for claims under way that may need it. `None`: so many are held.
    pub(crate) async fn room(&self, most: usize) -> Option<Room<'_>> {
        loop {
            let claimed = self.claimed.notified();
            tokio::pin!(claimed);
            // From now on none is missed.
            claimed.as_mut().enable();
            {
                // First, so that one which just got its slot counts twice rather than not at all.
                let mut claiming = lock(&self.claiming);
                let held = self.all().len();
                if held >= most {
                    return None;
                }
                if held + *claiming < most {
                    *claiming += 1;
                    return Some(Room(self));
                }
            }
            claimed.await;
        }
    }

    pub(crate) fn every(&self) -> Vec<(Keys, Slot)> {
        self.all().iter().map(|(keys, slot)| (*keys, slot.clone())).collect()
    }

    /// The longest ttl of what would be there besides `keys`, in milliseconds; 0 when nothing is.
    pub(crate) fn lease_without(&self, keys: Keys) -> Duration {
        let all = self.all();
        all.iter().filter(|(other, _)| **other != keys).map(|(_, slot)| slot.ttl()).max().unwrap_or_default()
    }

    /// One call at a time for each election.
    pub(crate) async fn turn(&self, keys: Keys) -> OwnedMutexGuard<()> {
        let turn = Arc::clone(lock(&self.turns).entry(keys).or_default());
        turn.lock_owned().await
    }

    /// The turn, unless somebody has it.
    pub(crate) fn try_turn(&self, keys: Keys) -> Option<OwnedMutexGuard<()>> {
        let turn = Arc::clone(lock(&self.turns).entry(keys).or_default());
        turn.try_lock_owned().ok()
    }

    /// Remembers that this id and ttl use the session, and says which do: the id where there is only one, and the longest ttl.
    pub(crate) fn used_by(&self, id: &CandidateId, ttl: Duration) -> (Option<CandidateId>, Option<Lease>) {
        let mut lease = lock(&self.lease);
        let known = lease.unwrap_or(Lease { ttl, is_only: true });
        *lease = Some(Lease { ttl: known.ttl.max(ttl), is_only: known.is_only && known.ttl == ttl });
        (only(&self.ids, id), *lease)
    }

    /// What a session of this role is called, by the ids that have used this one.
    pub(crate) fn name(&self, role: &str) -> String {
        let ids = lock(&self.ids);
        if ids.is_empty() {
            return names::of_nobody(role);
        }
        names::of(ids.first().filter(|_| ids.len() == 1), role)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Keys, Slot>> {
        lock(&self.all)
    }
}

/// One claim's room.
pub(crate) struct Room<'a>(&'a Slots);

impl Drop for Room<'_> {
    fn drop(&mut self) {
        *lock(&self.0.claiming) -= 1;
        self.0.claimed.notify_waiters();
    }
}

/// Two are as untold as many, so no more are kept.
fn only<T: Ord + Clone>(known: &Mutex<BTreeSet<T>>, new: &T) -> Option<T> {
    let mut known = lock(known);
    if known.len() < 2 {
        known.insert(new.clone());
    }
    (known.len() == 1).then(|| new.clone())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn claims_under_way_take_room_and_only_what_is_held_refuses() {
        let slots = Slots::default();
        let waits = || Slot::Waiting { until: Boot::default(), ttl: Duration::from_secs(1), mark: 0 };
        let first = slots.room(2).await;
        let second = slots.room(2).await;
        assert!(first.is_some() && second.is_some());
        let mut third = Box::pin(slots.room(2));
        assert!(third.as_mut().now_or_never().is_none(), "both may yet become locks");
        slots.put(Keys(0, 1), waits());
        drop(first);
        assert!(third.as_mut().now_or_never().is_none(), "one has");
        drop(second);
        let third = third.await;
        assert!(third.is_some(), "and one has not");
        slots.put(Keys(0, 2), waits());
        drop(third);
        assert!(slots.room(2).await.is_none());
    }
}
