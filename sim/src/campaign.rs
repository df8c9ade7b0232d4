//! Many seeds, on several threads. Every world is on its own, so the threads share nothing but the next number.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bellwether_core::Planted;

use crate::connection::lock;
use crate::invariants::Violation;
use crate::options::StoreKind;
use crate::tally::Tally;

/// After so many violations the rest would tell nothing new.
const VIOLATIONS_MAX: usize = 20;

/// What came of all of them.
#[derive(Debug, Default)]
pub struct Summary {
    /// How many ran.
    pub seeds: u64,
    /// Figures of all of them together.
    pub tally: Tally,
    /// What was wrong, by seed.
    pub violations: Vec<(u64, Violation)>,
}

/// Runs `count` seeds from `from` on, or those of them whose world has this kind of store; `progress` hears how many are
/// done, from any thread.
pub fn run(
    from: u64,
    count: u64,
    store: Option<StoreKind>,
    threads: usize,
    progress: impl Fn(u64) + Sync,
) -> Summary {
    let next = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let summary = Mutex::new(Summary::default());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let seed = from + index;
                    if store.is_some_and(|store| store != StoreKind::of(seed)) {
                        continue;
                    }
                    let outcome = crate::run(seed, Planted::default(), false);
                    let mut summary = lock(&summary);
                    summary.seeds += 1;
                    summary.tally.add(&outcome.tally);
                    summary.violations.extend(outcome.violation.map(|violation| (seed, violation)));
                    if summary.violations.len() >= VIOLATIONS_MAX {
                        stop.store(true, Ordering::Relaxed);
                    }
                    progress(summary.seeds);
                }
            });
        }
    });
    let mut summary = summary.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    summary.violations.sort_by_key(|(seed, _)| *seed);
    summary
}
