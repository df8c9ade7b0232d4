//! Known bugs, put back in: each must be caught.

use bellwether_core::{Bug, Planted};

use crate::invariants::Violation;

/// How many worlds a bug may survive before it counts as not caught.
pub const SEEDS_MAX: u64 = 2_000;

/// Where a bug was caught.
#[derive(Clone, Debug)]
pub struct Caught {
    /// The seed.
    pub seed: u64,
    /// How.
    pub violation: Violation,
}

/// Runs seeds from 1 on with this bug until one catches it.
pub fn hunt(bug: Bug, seeds: u64) -> Option<Caught> {
    (1..=seeds).find_map(|seed| {
        let outcome = crate::run(seed, Planted::with(bug), false);
        outcome.violation.map(|violation| Caught { seed, violation })
    })
}
