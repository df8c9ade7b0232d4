//! After many errors in a row, a longer pause.

use std::time::Duration;

use crate::Boot;

/// A circuit breaker: after many errors in a row, the candidate waits longer before it tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// The number of errors in a row that opens the breaker; at least 1.
    pub failures: u32,
    /// How long the breaker stays open. Then the candidate makes one attempt, and another error opens the breaker again.
    pub open_for: Duration,
}

impl Default for Breaker {
    /// Ten failures, thirty seconds.
    fn default() -> Breaker {
        Breaker { failures: 10, open_for: Duration::from_secs(30) }
    }
}

impl Breaker {
    /// Until when the candidate makes no attempt, after the `errors`-th error in a row at `now`.
    pub(crate) fn open_until(&self, errors: u32, now: Boot) -> Option<Boot> {
        (errors >= self.failures).then(|| now + self.open_for)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_at_the_threshold_and_again_at_every_error_after_it() {
        let breaker = Breaker { failures: 3, open_for: Duration::from_secs(30) };
        let now = Boot::from_nanos(7);
        assert_eq!(breaker.open_until(2, now), None);
        assert_eq!(breaker.open_until(3, now), Some(now + Duration::from_secs(30)));
        assert_eq!(breaker.open_until(4, now), Some(now + Duration::from_secs(30)));
    }
}
