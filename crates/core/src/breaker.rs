//! After many errors in a row, a longer pause.

use std::time::Duration;

use crate::Boot;

/// How many errors in a row open the breaker, and for how long it then keeps attempts back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// Errors in a row that open it; at least 1.
    pub failures: u32,
    /// How long it stays open; then one attempt is let through, and one more error opens it again.
    pub open_for: Duration,
}

impl Default for Breaker {
    /// What seed deployments on NATS use: ten failures, thirty seconds.
    fn default() -> Breaker {
        Breaker { failures: 10, open_for: Duration::from_secs(30) }
    }
}

impl Breaker {
    /// Until when attempts are kept back, after the `errors`-th error in a row at `now`.
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
