//! Claims under way: each may be a lock at the server already, though nobody here has read the answer yet.
//!
//! So they count wherever what the session holds does: for how many locks there is room, and for how much silence the session may bear.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Notify;

use crate::lock;

/// The claims of a pair of sessions, at most one for each election.
pub(super) struct ClaimsUnderWay<K> {
    ttls: Mutex<HashMap<K, Duration>>,
    ended: Notify,
}

/// One claim, until it is dropped. By then its lock is in hand, or known not to be ours.
pub(super) struct Room<'a, K: Copy + Eq + Hash> {
    all: &'a ClaimsUnderWay<K>,
    key: K,
}

impl<K> Default for ClaimsUnderWay<K> {
    fn default() -> ClaimsUnderWay<K> {
        ClaimsUnderWay { ttls: Mutex::default(), ended: Notify::new() }
    }
}

impl<K: Copy + Eq + Hash> ClaimsUnderWay<K> {
    /// The longest ttl of those of other elections than that.
    pub(super) fn longest_ttl(&self, but: Option<K>) -> Duration {
        let ttls = lock(&self.ttls);
        let others = ttls.iter().filter(|(key, _)| Some(**key) != but);
        others.map(|(_, ttl)| *ttl).max().unwrap_or_default()
    }

    /// Begins one, when there is room for its lock beside those that are `held`. `None` if `most` are.
    pub(super) async fn room(
        &self,
        most: usize,
        (key, ttl): (K, Duration),
        held: impl Fn() -> usize,
    ) -> Option<Room<'_, K>> {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // From now on none is missed.
            ended.as_mut().enable();
            {
                // First, so that one which just became a lock counts twice rather than not at all.
                let mut ttls = lock(&self.ttls);
                let held = held();
                if held >= most {
                    return None;
                }
                if held + ttls.len() < most {
                    ttls.insert(key, ttl);
                    return Some(Room { all: self, key });
                }
            }
            ended.await;
        }
    }
}

impl<K: Copy + Eq + Hash> Drop for Room<'_, K> {
    fn drop(&mut self) {
        lock(&self.all.ttls).remove(&self.key);
        self.all.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn a_claim_under_way_counts_for_the_lease_until_its_lock_is_in_hand() {
        let (claims, ttl) = (ClaimsUnderWay::default(), Duration::from_secs(3));
        let room = claims.room(usize::MAX, (1, ttl), || 0).await;
        assert_eq!(claims.longest_ttl(Some(2)), ttl, "what releases 2 must not forget 1");
        assert_eq!(claims.longest_ttl(Some(1)), Duration::ZERO);
        assert_eq!(claims.longest_ttl(None), ttl);
        drop(room);
        assert_eq!(claims.longest_ttl(None), Duration::ZERO);
    }

    #[tokio::test]
    async fn claims_under_way_take_the_room_of_locks() {
        let (claims, ttl) = (ClaimsUnderWay::default(), Duration::from_secs(3));
        let one = claims.room(2, (1, ttl), || 1).await;
        assert!(one.is_some() && claims.room(1, (2, ttl), || 1).await.is_none());
        let mut waiting = std::pin::pin!(claims.room(2, (2, ttl), || 1));
        let is_pending =
            std::future::poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_pending()));
        assert!(is_pending.await);
        drop(one);
        assert!(waiting.await.is_some());
    }
}
