//! A histogram of durations that is added to without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts durations in `N` buckets, each twice as wide as the one before, and one for what is longer than all of them.
#[derive(Debug)]
pub(crate) struct Histogram<const N: usize> {
    first: Duration,
    counts: [AtomicU64; N],
    longer: AtomicU64,
    /// In nanoseconds: enough for five centuries.
    sum: AtomicU64,
}

impl<const N: usize> Histogram<N> {
    /// The first bucket holds what takes `first` at most.
    pub(super) fn from(first: Duration) -> Histogram<N> {
        let counts = std::array::from_fn(|_| AtomicU64::new(0));
        Histogram { first, counts, longer: AtomicU64::new(0), sum: AtomicU64::new(0) }
    }

    pub(super) fn add(&self, span: Duration) {
        let bucket = self.bounds().position(|bound| span <= bound);
        let count = bucket.map_or(&self.longer, |bucket| &self.counts[bucket]);
        // The sum first: whoever sees the count sees at least this sum, and an average is never below the truth by a whole sample.
        self.sum.fetch_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        count.fetch_add(1, Ordering::Release);
    }

    fn bounds(&self) -> impl Iterator<Item = Duration> {
        let first = self.first;
        (0..N).map(move |power| first * (1 << power))
    }
}

#[cfg(feature = "metrics")]
impl<const N: usize> Histogram<N> {
    /// The upper bound of each bucket in seconds with what is in it, the last without a bound.
    pub(crate) fn buckets(&self) -> Vec<(f64, u64)> {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Acquire));
        let mut buckets: Vec<(f64, u64)> =
            self.bounds().map(|bound| bound.as_secs_f64()).zip(counts).collect();
        buckets.push((f64::INFINITY, self.longer.load(Ordering::Acquire)));
        buckets
    }

    /// All durations together, in seconds.
    pub(crate) fn sum(&self) -> f64 {
        Duration::from_nanos(self.sum.load(Ordering::Relaxed)).as_secs_f64()
    }
}

#[cfg(all(test, feature = "metrics"))]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_first_bucket_that_is_wide_enough() {
        let histogram = Histogram::<3>::from(Duration::from_millis(1));
        for millis in [0, 1, 2, 3, 4, 5, 1_000] {
            histogram.add(Duration::from_millis(millis));
        }
        assert_eq!(histogram.buckets(), [(0.001, 2), (0.002, 1), (0.004, 2), (f64::INFINITY, 2)]);
        assert!((histogram.sum() - 1.015).abs() < 1e-9);
    }
}
