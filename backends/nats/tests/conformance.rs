//! The suite that every backend passes, on a current server and on the oldest that is supported.

use std::sync::Arc;

use bellwether_backend::conformance::{self, Harness};
use bellwether_backend::faults::{Faults, FaultyRegister};
use bellwether_backend::{Backend, Fut, Lease};
use bellwether_core::{Clock, ElectionName, Error};
use bellwether_nats::{Config, NatsRegister, from_url};
use bellwether_support::clock;
use bellwether_support::servers::nats::{Server, Version};
use serde_json::json;

const BUCKET: &str = "bellwether";

struct Servers(Server);

impl Harness for Servers {
    fn clock(&self) -> Arc<dyn Clock> {
        clock()
    }

    fn connect(&self, clock: Arc<dyn Clock>) -> Fut<'_, Result<Arc<dyn Backend>, Error>> {
        Box::pin(async move { Ok(Arc::new(from_url(&self.0.url(), clock)?) as Arc<dyn Backend>) })
    }

    fn connect_faulty(
        &self,
        clock: Arc<dyn Clock>,
        faults: Faults,
    ) -> Fut<'_, Result<Arc<dyn Backend>, Error>> {
        Box::pin(async move {
            let register = NatsRegister::new(Config::from_url(&self.0.url())?);
            Ok(Arc::new(Lease::new(FaultyRegister::new(register, faults), clock)) as Arc<dyn Backend>)
        })
    }

    /// As somebody with a tool would.
    fn delete<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<bool, Error>> {
        Box::pin(async move {
            self.0.put(BUCKET, &format!("election.{on}"), None).await;
            Ok(true)
        })
    }

    fn fingerprint(&self) -> Fut<'_, Result<Option<String>, Error>> {
        Box::pin(async move { Ok(Some(self.0.last_sequence(BUCKET).await.to_string())) })
    }

    /// After a deletion they come from the stream's own counter.
    fn remembers_floors(&self) -> bool {
        false
    }
}

async fn conforms(version: Version) {
    let server = Server::start(version).await;
    server.bucket(BUCKET, json!({})).await;
    let report = conformance::run(Arc::new(Servers(server))).await;
    println!("{report}");
    report.assert_passed();
    for (case, why) in report.skipped() {
        let expected =
            why == "the death of a process cannot be proven" || why.contains("the store's own counter");
        assert!(expected, "{case}: {why}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_current_server_conforms() {
    conforms(Version::Current).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn debians_server_conforms() {
    conforms(Version::Old).await;
}
