//! The last renewals of one candidate, for people who look: written without a lock, each in one word.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bellwether_core::Boot;

use super::Ended;

/// So many are kept. With the usual timing that is the last two and a half minutes; in ten thousand elections it takes 2.5 MB.
const KEPT: usize = 32;

/// A word holds, from its top: when the answer came, in milliseconds (34 years of uptime); how long it took, in steps of 10 µs (42 s,
/// which is longer than a call may take); how it ended. One word, so that no reader sees half of a renewal.
const TOOK_BITS: u32 = 22;
const ENDED_BITS: u32 = 2;
const STEP_MICROS: u128 = 10;

/// One renewal that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Renewal {
    /// When the answer came, to the millisecond.
    pub(crate) at: Boot,
    pub(crate) took: Duration,
    pub(crate) how: Ended,
}

#[derive(Debug)]
pub(crate) struct Renewals {
    /// Zero where there was none yet.
    words: [AtomicU64; KEPT],
    written: AtomicUsize,
}

impl Default for Renewals {
    fn default() -> Renewals {
        Renewals { words: std::array::from_fn(|_| AtomicU64::new(0)), written: AtomicUsize::new(0) }
    }
}

impl Renewals {
    pub(super) fn add(&self, renewal: Renewal) {
        let place = self.written.fetch_add(1, Ordering::Relaxed) % KEPT;
        self.words[place].store(renewal.to_word(), Ordering::Relaxed);
    }

    /// Those that are kept, oldest first.
    #[cfg(feature = "metrics")]
    pub(crate) fn kept(&self) -> Vec<Renewal> {
        let words = self.words.iter().map(|word| word.load(Ordering::Relaxed));
        let mut kept: Vec<Renewal> = words.filter(|word| *word != 0).map(Renewal::from_word).collect();
        // By time and not by place: one may have been overwritten between two looks.
        kept.sort_by_key(|renewal| renewal.at);
        kept
    }
}

impl Renewal {
    fn to_word(self) -> u64 {
        let most = (1_u128 << TOOK_BITS) - 1;
        let took = (self.took.as_micros() / STEP_MICROS).min(most) as u64;
        let how = Ended::ALL.iter().position(|one| *one == self.how).expect("a word of the list") as u64;
        // A millisecond at least, so that no renewal is zero.
        let millis = (self.at.as_nanos() / 1_000_000).max(1);
        millis << (TOOK_BITS + ENDED_BITS) | took << ENDED_BITS | how
    }

    #[cfg(feature = "metrics")]
    fn from_word(word: u64) -> Renewal {
        let how = Ended::ALL[(word & ((1 << ENDED_BITS) - 1)) as usize];
        let took = word >> ENDED_BITS & ((1 << TOOK_BITS) - 1);
        Renewal {
            at: Boot::from_nanos((word >> (TOOK_BITS + ENDED_BITS)) * 1_000_000),
            took: Duration::from_micros(took * STEP_MICROS as u64),
            how,
        }
    }
}

#[cfg(all(test, feature = "metrics"))]
mod tests {
    use super::*;

    fn renewal(millis: u64, took: Duration, how: Ended) -> Renewal {
        Renewal { at: Boot::from_nanos(millis * 1_000_000), took, how }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let renewals = Renewals::default();
        assert!(renewals.kept().is_empty());
        let all = Ended::ALL.map(|how| renewal(7 + how as u64, Duration::from_micros(1_230), how));
        all.iter().for_each(|one| renewals.add(*one));
        assert_eq!(renewals.kept(), all);
        renewals.add(renewal(99, Duration::from_secs(3_600), Ended::Unknown));
        assert_eq!(renewals.kept()[4].took, Duration::from_micros(41_943_030), "as long as can be told");
    }

    #[test]
    fn the_last_are_kept_oldest_first() {
        let renewals = Renewals::default();
        for millis in 1..=KEPT as u64 + 5 {
            renewals.add(renewal(millis, Duration::ZERO, Ended::Done));
        }
        let kept = renewals.kept();
        assert_eq!((kept.len(), kept[0].at.as_nanos()), (KEPT, 6_000_000));
        assert!(kept.is_sorted_by_key(|one| one.at));
    }
}
