//! What a node counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::names::{ClusterId, NodeName};

/// What a node has counted since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterMetrics {
    /// Requests to join, and invitations, that were sent.
    pub join_attempts: u64,
    /// Those that had no answer, or a refusal.
    pub join_failures: u64,
    /// Names under which two cluster ids were seen: two clusters of one configuration, or a directory that was mixed up. Should be 0.
    pub names_with_two_clusters: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    attempts: AtomicU64,
    failures: AtomicU64,
    clusters: Mutex<BTreeMap<NodeName, Seen>>,
}

/// Names that are remembered: more than a cluster ever has. Whoever may connect can say any name.
const NAMES_MAX: usize = 1_024;

enum Seen {
    One(ClusterId),
    Two,
}

impl Counters {
    pub(super) fn attempt(&self) {
        self.attempts.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// A node of this name says that it is in this cluster.
    pub(super) fn seen(&self, name: &NodeName, cluster: ClusterId) {
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        if clusters.len() >= NAMES_MAX && !clusters.contains_key(name) {
            return;
        }
        let seen = clusters.entry(name.clone()).or_insert(Seen::One(cluster));
        if let Seen::One(before) = *seen
            && before != cluster
        {
            *seen = Seen::Two;
            tracing::error!(
                %name, %before, %cluster,
                "two cluster ids were seen under one name: there are two clusters, or data directories were mixed up; end one of them"
            );
        }
    }

    pub(super) fn read(&self) -> ClusterMetrics {
        let clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        let two = clusters.values().filter(|seen| matches!(seen, Seen::Two)).count();
        ClusterMetrics {
            join_attempts: self.attempts.load(Ordering::Relaxed),
            join_failures: self.failures.load(Ordering::Relaxed),
            names_with_two_clusters: two as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_two_clusters_is_counted_once() {
        let counters = Counters::default();
        let (name, cluster) = (NodeName::new("a-0").unwrap(), ClusterId::from_random);
        for number in [1, 1, 2, 1] {
            counters.seen(&name, cluster(number));
        }
        assert_eq!(counters.read().names_with_two_clusters, 1);
    }

    #[test]
    fn names_that_anybody_may_say_do_not_fill_the_memory() {
        let counters = Counters::default();
        for number in 0..2 * NAMES_MAX {
            counters.seen(&NodeName::new(format!("n-{number}")).unwrap(), ClusterId::from_random(1));
        }
        assert_eq!(counters.clusters.lock().unwrap().len(), NAMES_MAX);
        counters.seen(&NodeName::new("n-0").unwrap(), ClusterId::from_random(2));
        assert_eq!(counters.read().names_with_two_clusters, 1, "those that are known still count");
    }
}
