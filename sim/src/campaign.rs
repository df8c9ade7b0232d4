//! Many seeds, on several threads. Every world is on its own, so the threads share nothing but the next number.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::connection::lock;
use crate::invariants::Violation;
use crate::options::StoreKind;
use crate::tally::Tally;

/// Which seeds to run, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Campaign {
    /// The first seed.
    pub from: u64,
    /// How many seeds.
    pub count: u64,
    /// Only those of them whose world has this kind of store.
    pub store: Option<StoreKind>,
    /// On so many threads.
    pub threads: usize,
    /// After so many violations the rest would tell nothing new.
    pub violations_max: usize,
    /// After a violation of one of these invariants, too.
    pub until: Vec<String>,
}

/// What came of all of them.
#[derive(Debug, Default)]
pub struct Summary {
    /// How many ran.
    pub seeds: u64,
    /// Figures of all of them together.
    pub tally: Tally,
    /// What was wrong, by seed.
    pub violations: Vec<(u64, Violation)>,
    /// What happened in all of them, as a number that does not depend on their order.
    pub hash: u64,
}

impl Campaign {
    /// So many seeds from this one on, on every core.
    pub fn new(from: u64, count: u64) -> Campaign {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        Campaign { from, count, store: None, threads, violations_max: 20, until: Vec::new() }
    }

    /// Runs them; `progress` hears what came of those that are done, from any thread.
    pub fn run(&self, progress: impl Fn(&Summary) + Sync) -> Summary {
        let next = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let summary = Mutex::new(Summary::default());
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= self.count || stop.load(Ordering::Relaxed) {
                            return;
                        }
                        let seed = self.from + index;
                        if self.store.is_some_and(|store| store != StoreKind::of(seed)) {
                            continue;
                        }
                        let outcome = crate::run(seed, false);
                        let mut summary = lock(&summary);
                        summary.seeds += 1;
                        summary.tally.add(&outcome.tally);
                        summary.hash = summary.hash.wrapping_add(outcome.hash.rotate_left(seed as u32 % 64));
                        let is_last = outcome.violation.as_ref().is_some_and(|found| self.is_awaited(found));
                        summary.violations.extend(outcome.violation.map(|violation| (seed, violation)));
                        if is_last || summary.violations.len() >= self.violations_max {
                            stop.store(true, Ordering::Relaxed);
                        }
                        progress(&summary);
                    }
                });
            }
        });
        let mut summary = summary.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        summary.violations.sort_by_key(|(seed, _)| *seed);
        summary
    }

    fn is_awaited(&self, found: &Violation) -> bool {
        self.until.iter().any(|invariant| invariant == found.finding.invariant)
    }
}
