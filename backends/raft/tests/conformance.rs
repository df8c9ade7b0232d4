//! The suite that every backend passes, on three nodes. A program of its own: it times what a busy machine delays.

#[path = "elections/stage.rs"]
#[expect(dead_code, reason = "the other tests use the rest")]
mod stage;

use std::sync::Arc;

use bellwether_backend::conformance::{self, Harness};
use bellwether_backend::{Backend, Fut};
use bellwether_core::{Clock, StoreError};
use bellwether_raft::from_url;
use bellwether_support::clock;

use stage::Stage;

struct Nodes(Stage);

impl Harness for Nodes {
    fn clock(&self) -> Arc<dyn Clock> {
        clock()
    }

    fn connect(&self, clock: Arc<dyn Clock>) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        Box::pin(async move { Ok(Arc::new(from_url(&self.0.url(), clock)?) as Arc<dyn Backend>) })
    }

    /// What looking could leave behind. Sessions of earlier cases expire meanwhile, so they are left out.
    fn fingerprint(&self) -> Fut<'_, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            let store = self.0.client();
            let mut all = Vec::new();
            for on in store.elections().await? {
                all.push((on.to_string(), store.history(&on).await?.len()));
            }
            Ok(Some(format!("{all:?}")))
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_conform() {
    let report = conformance::run(Arc::new(Nodes(Stage::start().await))).await;
    println!("{report}");
    report.assert_passed();
    for (case, why) in report.skipped() {
        let expected = [
            "the death of a process cannot be proven",
            "the harness cannot remove a record",
            "a claim does not read first",
            "elections cannot be paused",
            "a claim on a session changes nothing that is watched",
            "a session's heartbeat changes nothing that is watched",
        ];
        assert!(expected.contains(&why), "{case}: {why}");
    }
}
