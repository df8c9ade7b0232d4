//! The suite that every backend passes, with every profile, on a current server and on the oldest that is supported.

use std::sync::Arc;

use bellwether_backend::conformance::{self, Harness};
use bellwether_backend::faults::{Faults, FaultyRegister};
use bellwether_backend::{Backend, Fut, Lease};
use bellwether_core::{Clock, ElectionName, Error};
use bellwether_nats::{Config, NatsRegister, from_url};
use bellwether_support::clock;
use bellwether_support::servers::nats::{Server, Version};
use serde_json::{Value, json};

const BUCKET: &str = "bellwether";

struct Servers {
    server: Server,
    /// What follows the server's address.
    query: &'static str,
    /// What comes before the name of an election in its key.
    prefix: &'static str,
}

impl Servers {
    fn url(&self) -> String {
        format!("{}?bucket={BUCKET}{}", self.server.url(), self.query)
    }
}

impl Harness for Servers {
    fn clock(&self) -> Arc<dyn Clock> {
        clock()
    }

    fn connect(&self, clock: Arc<dyn Clock>) -> Fut<'_, Result<Arc<dyn Backend>, Error>> {
        Box::pin(async move { Ok(Arc::new(from_url(&self.url(), clock)?) as Arc<dyn Backend>) })
    }

    fn connect_faulty(
        &self,
        clock: Arc<dyn Clock>,
        faults: Faults,
    ) -> Fut<'_, Result<Arc<dyn Backend>, Error>> {
        Box::pin(async move {
            let register = NatsRegister::new(Config::from_url(&self.url())?);
            Ok(Arc::new(Lease::new(FaultyRegister::new(register, faults), clock)) as Arc<dyn Backend>)
        })
    }

    /// As somebody with a tool would.
    fn delete<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<bool, Error>> {
        Box::pin(async move {
            self.server.put(BUCKET, &format!("{}{on}", self.prefix), None).await;
            Ok(true)
        })
    }

    fn fingerprint(&self) -> Fut<'_, Result<Option<String>, Error>> {
        Box::pin(async move { Ok(Some(self.server.last_sequence(BUCKET).await.to_string())) })
    }

    /// After a deletion they come from the stream's own counter.
    fn remembers_floors(&self) -> bool {
        false
    }
}

async fn conforms(
    version: Version,
    settings: Value,
    query: &'static str,
    prefix: &'static str,
    without: &[&str],
) {
    let server = Server::start(version).await;
    server.bucket(BUCKET, settings).await;
    let report = conformance::run(Arc::new(Servers { server, query, prefix })).await;
    println!("{report}");
    report.assert_passed();
    for (case, why) in report.skipped() {
        let expected =
            why == "the death of a process cannot be proven" || why.contains("the store's own counter");
        assert!(expected || without.contains(&why), "{case}: {why}");
    }
}

async fn leader_conforms(version: Version, settings: Value) {
    let without = ["the store keeps no history", "a cooldown does not outlive a restart here"];
    conforms(version, settings, "&profile=leader", "", &without).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_current_server_conforms() {
    conforms(Version::Current, json!({}), "", "election.", &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn debians_server_conforms() {
    conforms(Version::Old, json!({}), "", "election.", &[]).await;
}

/// On a bucket as its users have it: the server takes away what is not renewed, and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_profile_leader_conforms_on_a_current_server() {
    let minute = 60_000_000_000_u64;
    let settings = json!({ "max_age": minute, "duplicate_window": minute, "allow_msg_ttl": true, "subject_delete_marker_ttl": minute });
    leader_conforms(Version::Current, settings).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_profile_leader_conforms_on_debians_server() {
    leader_conforms(Version::Old, json!({})).await;
}
