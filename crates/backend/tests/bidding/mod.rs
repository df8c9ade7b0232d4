//! The election of these tests, and bids on it.

use std::time::Duration;

use bellwether_core::{Bid, Candidate, CandidateId, Clock, ElectionName, Epoch, Incarnation};
use bellwether_deadman::SystemClock;

pub(crate) fn on() -> ElectionName {
    ElectionName::new("e").unwrap()
}

/// A bid that leaves now, by the start with this number of the candidate `id`.
pub(crate) fn bid(id: &str, start: u128, ttl: Duration) -> Bid {
    Bid {
        who: Candidate { id: CandidateId::new(id).unwrap(), incarnation: Incarnation::from_bits(start) },
        ttl,
        floor: Epoch::ZERO,
        priority: 0,
        metadata: Default::default(),
        cooldown: None,
        danger_reclaim: false,
        sent: SystemClock.boot(),
    }
}
