//! The suite on the store in memory.

mod support;

use std::sync::Arc;

use bellwether_backend::conformance::{self, Harness};
use bellwether_backend::{Backend, Fut};
use bellwether_core::{Clock, ErrorKind, StoreError};
use bellwether_deadman::SystemClock;
use support::InMemory;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_in_memory_conforms() {
    let report = conformance::run(Arc::new(InMemory::new())).await;
    println!("{report}");
    report.assert_passed();
    assert_eq!(report.results.len(), conformance::cases().count());
    // Memory has no process to kill; everything else it can do.
    for (case, why) in report.skipped() {
        assert_eq!(why, "the death of a process cannot be proven", "{case}");
    }
}

/// The whole again with the faults above the backend instead of below the lease, as a session store has them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_conforms_with_faults_above_the_backend() {
    let harness = InMemory { faults_below: false, ..InMemory::new() };
    let faulty = ["unknown", "late", "lost", "conflict", "arrive", "slow", "refused"];
    let report =
        conformance::run_some(Arc::new(harness), |case| faulty.iter().any(|word| case.contains(word))).await;
    println!("{report}");
    report.assert_passed();
    assert!(report.results.len() >= 12);
}

/// A store that is not there.
struct Nowhere;

impl Harness for Nowhere {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    fn connect(&self, _: Arc<dyn Clock>) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        Box::pin(async { Err(StoreError::new(ErrorKind::Unavailable, "nowhere", "no route to host")) })
    }
}

#[tokio::test]
async fn a_store_that_is_not_there_fails_every_case_with_the_reason() {
    let report = conformance::run(Arc::new(Nowhere)).await;
    assert_eq!(report.failed().count(), conformance::cases().count());
    assert!(report.failed().all(|(_, why)| why.contains("no route to host")), "{report}");
}
