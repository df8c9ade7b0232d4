//! Which elections are followed, by bucket and key.
//!
//! Owns the question what a watch should ask for, and the looks that a watch cannot answer. Looks wait in a [`Mailbox`], each
//! election once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;

use bellwether_backend::{Mailbox, lock};
use bellwether_core::{ElectionName, StoreError};
use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct Following {
    followed: Mutex<HashMap<String, Followed>>,
    /// Counts changes of what is followed.
    changed: watch::Sender<u64>,
    pub(crate) mail: Mailbox,
}

#[derive(Default)]
struct Followed {
    keys: BTreeMap<String, ElectionName>,
    /// Somebody sees to a watch of this bucket.
    watched: bool,
    /// The watch is open: it tells of changes from now on, and not of what is.
    open: bool,
    /// Why it is not, where that does not pass by itself.
    refused: Option<StoreError>,
}

impl Following {
    pub(crate) fn follow(&self, bucket: String, key: String, on: &ElectionName) {
        let mut followed = lock(&self.followed);
        let of_bucket = followed.entry(bucket).or_default();
        if of_bucket.keys.insert(key, on.clone()).is_none() && of_bucket.open {
            self.mail.put(on.clone());
        }
        drop(followed);
        self.changed.send_modify(|count| *count += 1);
    }

    /// The bucket itself stays until its watch asks what to watch, and finds nothing.
    pub(crate) fn unfollow(&self, bucket: &str, key: &str) {
        if let Some(of_bucket) = lock(&self.followed).get_mut(bucket) {
            of_bucket.keys.remove(key);
        }
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Buckets that need a watch and have none; the caller gives them one.
    pub(crate) fn unwatched(&self) -> Vec<String> {
        let mut followed = lock(&self.followed);
        let without = followed.iter_mut().filter(|(_, of)| !of.watched && !of.keys.is_empty());
        without
            .map(|(bucket, of)| {
                of.watched = true;
                bucket.clone()
            })
            .collect()
    }

    /// What the watch of this bucket should ask for: one key, or all leases where several are followed. `None`: nobody follows
    /// anything there any more, and the watch ends.
    pub(crate) fn filter(&self, bucket: &str, all: &str) -> Option<String> {
        let mut followed = lock(&self.followed);
        let of_bucket = followed.get_mut(bucket)?;
        let mut keys = of_bucket.keys.keys();
        match (keys.next(), keys.next()) {
            (None, _) => {
                followed.remove(bucket);
                None
            }
            (Some(only), None) => Some(only.clone()),
            _ => Some(all.to_owned()),
        }
    }

    pub(crate) fn election(&self, bucket: &str, key: &str) -> Option<ElectionName> {
        lock(&self.followed).get(bucket)?.keys.get(key).cloned()
    }

    /// The watch begins: the keys that it should tell of.
    pub(crate) fn opened(&self, bucket: &str) -> BTreeSet<String> {
        let mut followed = lock(&self.followed);
        let Some(of_bucket) = followed.get_mut(bucket) else { return BTreeSet::new() };
        (of_bucket.open, of_bucket.refused) = (true, None);
        of_bucket.keys.keys().cloned().collect()
    }

    pub(crate) fn closed(&self, bucket: &str) {
        if let Some(of_bucket) = lock(&self.followed).get_mut(bucket) {
            of_bucket.open = false;
        }
    }

    /// The keys that are followed.
    pub(crate) fn keys(&self, bucket: &str) -> BTreeSet<String> {
        let followed = lock(&self.followed);
        followed.get(bucket).map(|of_bucket| of_bucket.keys.keys().cloned().collect()).unwrap_or_default()
    }

    /// The server lets nobody of this process watch the bucket. True if that is news.
    pub(crate) fn refused(&self, bucket: &str, error: &StoreError) -> bool {
        let mut followed = lock(&self.followed);
        let Some(of_bucket) = followed.get_mut(bucket) else { return false };
        let before = of_bucket.refused.replace(error.clone());
        before.is_none_or(|before| before.to_string() != error.to_string())
    }

    /// Why there is no watch of this bucket, where that does not pass by itself.
    pub(crate) fn unwatched_because(&self, bucket: &str) -> Option<StoreError> {
        lock(&self.followed).get(bucket)?.refused.clone()
    }

    /// Everything is unwatched again: whoever saw to it is gone.
    pub(crate) fn abandoned(&self) {
        for of_bucket in lock(&self.followed).values_mut() {
            (of_bucket.watched, of_bucket.open) = (false, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_election_is_asked_for_by_its_key_and_several_by_a_wildcard() {
        let following = Following::default();
        let on = |name| ElectionName::new(name).unwrap();
        following.follow("b".into(), "election.a".into(), &on("a"));
        assert_eq!(following.unwatched(), ["b"]);
        assert!(following.unwatched().is_empty());
        assert_eq!(following.filter("b", "election.>").as_deref(), Some("election.a"));
        following.follow("b".into(), "election.c".into(), &on("c"));
        assert_eq!(following.filter("b", "election.>").as_deref(), Some("election.>"));
        assert_eq!(following.opened("b").len(), 2);
        following.unfollow("b", "election.a");
        following.unfollow("b", "election.c");
        assert_eq!(following.filter("b", "election.>"), None);
        following.follow("b".into(), "election.a".into(), &on("a"));
        assert_eq!(following.unwatched(), ["b"]);
    }
}
