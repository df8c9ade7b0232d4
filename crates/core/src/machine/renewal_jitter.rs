//! Spreading renewals in time, for candidates of which very many share a connection.

use std::time::Duration;

use super::Core;
use crate::{Boot, Rng};

/// The earliest that a first renewal is spread to, as a part of the renewal interval.
const SPREAD_FROM_PART: u32 = 8;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RenewalJitter {
    on: bool,
}

impl RenewalJitter {
    /// When the next renewal is due, and whether it still falls together with those of others: where the answer came so late that
    /// most of the interval is over, it cannot be spread.
    fn next(self, now: Boot, from: Boot, interval: Duration, bunched: bool, rng: &mut Rng) -> (Boot, bool) {
        let latest = from + interval;
        if !(self.on && bunched) {
            return (latest, false);
        }
        let earliest = (from + interval / SPREAD_FROM_PART).max(now).min(latest);
        let width = latest.since(earliest);
        (earliest + rng.between(Duration::ZERO, width), width < interval / 2)
    }
}

impl Core {
    /// From now on, the first renewal after a claim, or after a renewal that failed, comes earlier by a random part of the interval.
    /// Otherwise many elections which began together, or met the same outage, would renew at the same instants for good. Earlier is
    /// always safe.
    pub fn jitter_renewals(&mut self) {
        self.renewal_jitter.on = true;
    }

    pub(super) fn next_renewal(&mut self, from: Boot, bunched: bool) -> (Boot, bool) {
        let interval = self.settings.timing().renew();
        self.renewal_jitter.next(self.now, from, interval, bunched, &mut self.rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(8);

    #[test]
    fn without_jitter_a_renewal_is_due_after_the_interval() {
        let from = Boot::from_nanos(5);
        let due = RenewalJitter::default().next(from, from, INTERVAL, true, &mut Rng::new(1));
        assert_eq!(due, (from + INTERVAL, false));
    }

    #[test]
    fn a_bunched_renewal_comes_earlier_and_one_that_cannot_be_spread_stays_bunched() {
        let (jitter, from) = (RenewalJitter { on: true }, Boot::from_nanos(5));
        for seed in 0..100 {
            let rng = &mut Rng::new(seed);
            let (due, bunched) = jitter.next(from, from, INTERVAL, true, rng);
            assert!(due >= from + INTERVAL / 8 && due <= from + INTERVAL && !bunched);
            let late = from + Duration::from_secs(5);
            let (due, bunched) = jitter.next(late, from, INTERVAL, true, rng);
            assert!(due >= late && due <= from + INTERVAL && bunched);
        }
    }
}
