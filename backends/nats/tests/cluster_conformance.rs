//! The suite that every backend passes, in the profile `cluster`: a bucket for each election, made by the first claim.

use std::sync::Arc;

use bellwether_backend::conformance::{self, Harness};
use bellwether_backend::faults::{Faults, FaultyRegister};
use bellwether_backend::names::shortened;
use bellwether_backend::{Backend, Fut, Lease};
use bellwether_core::{Clock, ElectionName, Error};
use bellwether_nats::{Config, NatsRegister, from_url};
use bellwether_support::clock;
use bellwether_support::servers::nats::{Server, Version};
use serde_json::json;

/// Where past leaderships are kept.
const HISTORY: &str = "past";

struct Servers(Server);

impl Servers {
    fn url(&self) -> String {
        format!("{}?profile=cluster&create=yes&bucket={HISTORY}", self.0.url())
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
            self.0.put(&bucket(on.as_str()), "lease", None).await;
            Ok(true)
        })
    }

    /// Every bucket with the number of its last write.
    fn fingerprint(&self) -> Fut<'_, Result<Option<String>, Error>> {
        Box::pin(async move {
            let mut all = Vec::new();
            loop {
                let page = self.0.api("STREAM.LIST", json!({ "offset": all.len() })).await;
                let streams = page["streams"].as_array().cloned().unwrap_or_default();
                if streams.is_empty() {
                    break;
                }
                all.extend(
                    streams
                        .iter()
                        .map(|one| format!("{} {}", one["config"]["name"], one["state"]["last_seq"])),
                );
            }
            all.sort();
            Ok(Some(all.join("\n")))
        })
    }

    /// After a deletion they come from the stream's own counter.
    fn remembers_floors(&self) -> bool {
        false
    }
}

fn bucket(name: &str) -> String {
    let in_alphabet = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let spell = |c| if in_alphabet(c) { c } else { '-' };
    let plain = name.chars().all(in_alphabet);
    format!("cluster-{}", if plain { name.to_owned() } else { shortened(name, '_', spell) })
}

async fn conforms(version: Version) {
    let server = Server::start(version).await;
    server.bucket(HISTORY, json!({})).await;
    let report = conformance::run(Arc::new(Servers(server))).await;
    println!("{report}");
    report.assert_passed();
    for (case, why) in report.skipped() {
        let expected = why == "the death of a process cannot be proven"
            || why == "the store cannot list its elections"
            || why.contains("the store's own counter");
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
