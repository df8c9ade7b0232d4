//! Which cases met the outage, and how long it was.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bellwether_core::{Boot, ElectionName};
use bellwether_deadman::boot_now;

/// What the elections of a case begin with: the same for all of one case, and another for every case.
const CASE_BYTES: usize = "conformance-01234567".len();

/// What the calls of a batch met after the fault. Cases call nothing before it.
#[derive(Debug, Default)]
pub(super) struct Met {
    state: Mutex<State>,
    repeated: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    failed: Option<Boot>,
    first_answer: Option<Boot>,
    /// The first call of each case.
    first_calls: BTreeMap<String, Boot>,
}

impl Met {
    /// The leader has failed.
    pub(super) fn fails(&self) {
        self.lock().failed = Some(boot_now());
    }

    /// A call begins, about this election where it is about one.
    pub(super) fn begins(&self, on: Option<&ElectionName>) {
        if let Some(case) = on.and_then(|on| on.as_str().get(..CASE_BYTES)) {
            self.lock().first_calls.entry(case.to_owned()).or_insert_with(boot_now);
        }
    }

    /// The cluster has answered.
    pub(super) fn answered(&self) {
        let mut state = self.lock();
        if state.failed.is_some() {
            state.first_answer.get_or_insert_with(boot_now);
        }
    }

    /// A call is made again.
    pub(super) fn repeats(&self) {
        self.repeated.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn repeated(&self) -> usize {
        self.repeated.load(Ordering::Relaxed)
    }

    /// From the fault to the first answer.
    pub(super) fn outage(&self) -> Option<Duration> {
        let state = self.lock();
        Some(state.first_answer?.since(state.failed?))
    }

    /// How many cases called before anybody was answered, of how many that called.
    pub(super) fn cases(&self) -> (usize, usize) {
        let state = self.lock();
        let until = state.first_answer.unwrap_or(Boot::FOREVER);
        let before = state.first_calls.values().filter(|called| **called < until).count();
        (before, state.first_calls.len())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
