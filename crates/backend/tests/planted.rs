//! The suite can fail: every known bug of the lease, put back in, is reported by the case that is about it.

mod support;

use std::sync::Arc;

use bellwether_backend::conformance;
use bellwether_core::{Bug, Planted};
use support::InMemory;

const CAUGHT: &[(Bug, &str)] = &[
    (Bug::BlindRelease, "stale release refused"),
    (Bug::BlindRenew, "stale renew refused"),
    (Bug::VanishedIsFree, "a record seen and vanished counts for its ttl"),
    (Bug::EpochResetOnDelete, "epoch up over deletion of the record"),
    (Bug::SameIdIsMe, "same id twice never leads twice"),
    (Bug::RequestCountsAsRenewal, "a request does not count as a renewal"),
    (Bug::OwnTtlForRecord, "the record's ttl counts, not the follower's"),
    (Bug::WallClockExpiry, "a clock set ahead deposes nobody"),
    (Bug::SeenBeforeRead, "a slow look makes no record older"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_planted_bug_fails_its_case() {
    let plays = CAUGHT.iter().map(|(bug, case)| {
        tokio::spawn(async move {
            let harness = InMemory { planted: Planted::with(*bug), ..InMemory::new() };
            let report = conformance::run_some(Arc::new(harness), |name| name == *case).await;
            println!("{bug:?}\n{report}");
            (*bug, report.results.len() == 1 && report.failed().count() == 1)
        })
    });
    for play in futures_util::future::join_all(plays).await {
        let (bug, caught) = play.expect("the suite itself does not panic");
        assert!(caught, "{bug:?} was not caught");
    }
}
