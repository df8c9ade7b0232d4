//! Spreading renewals in time, for candidates of which very many share a connection.

use std::time::Duration;

use super::Core;
use crate::Boot;

/// The earliest that a first renewal is spread to, as a part of the renewal interval.
const SPREAD_FROM_PART: u32 = 8;

impl Core {
    /// From now on, the first renewal after a claim, or after one that failed, comes earlier by a random part of the interval, so that
    /// of many elections which began together, or met the same outage, not all renew at the same instants for good. Earlier is
    /// always safe.
    pub fn jitter_renewals(&mut self) {
        self.renewal_jitter = true;
    }

    /// When the next renewal is due, and whether it is still together with others': where the answer came so late that most of the
    /// interval is over, there was no room to spread it.
    pub(super) fn next_renewal(&mut self, from: Boot, bunched: bool) -> (Boot, bool) {
        let renew = self.settings.timing().renew();
        let latest = from + renew;
        if !(self.renewal_jitter && bunched) {
            return (latest, false);
        }
        let earliest = (from + renew / SPREAD_FROM_PART).max(self.now).min(latest);
        let room = latest.since(earliest);
        (earliest + self.rng.between(Duration::ZERO, room), room < renew / 2)
    }
}
