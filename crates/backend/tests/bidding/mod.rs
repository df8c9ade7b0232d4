//! The election of these tests, and bids on it.

use std::time::Duration;

use bellwether_core::{Bid, Candidate, CandidateId, Clock, ElectionName, Incarnation};
use bellwether_deadman::SystemClock;

pub(crate) fn on() -> ElectionName {
    ElectionName::new("e").unwrap()
}

/// A bid that leaves now, by the start with this number of the candidate `id`.
pub(crate) fn bid(id: &str, start: u128, ttl: Duration) -> Bid {
    Bid::new(
        Candidate { id: CandidateId::new(id).unwrap(), incarnation: Incarnation::from_bits(start) },
        ttl,
        SystemClock.boot(),
    )
}
