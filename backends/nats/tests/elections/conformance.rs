//! The suite that every backend passes, with every profile, on a current server and on the oldest that is supported.

use std::sync::Arc;

use bellwether_backend::conformance::{self, Harness};
use bellwether_backend::faults::{Faults, FaultyRegister};
use bellwether_backend::names::shortened;
use bellwether_backend::{Backend, Fut, Lease};
use bellwether_core::{Clock, ElectionName, StoreError};
use bellwether_nats::{Config, NatsRegister, from_url};
use bellwether_support::clock;
use bellwether_support::servers::nats::{Server, Version};
use serde_json::{Value, json};

const BUCKET: &str = "bellwether";
const LEADERS: &str = "leaders";

struct Servers {
    server: Server,
    /// What follows the server's address.
    query: &'static str,
    /// The bucket and the key of an election's lease.
    lease: fn(&str) -> (String, String),
}

impl Servers {
    fn url(&self) -> String {
        format!("{}{}", self.server.url(), self.query)
    }
}

impl Harness for Servers {
    fn clock(&self) -> Arc<dyn Clock> {
        clock()
    }

    fn connect(&self, clock: Arc<dyn Clock>) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        Box::pin(async move { Ok(Arc::new(from_url(&self.url(), clock)?) as Arc<dyn Backend>) })
    }

    fn connect_faulty(
        &self,
        clock: Arc<dyn Clock>,
        faults: Faults,
    ) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        Box::pin(async move {
            let register = NatsRegister::new(Config::from_url(&self.url())?);
            Ok(Arc::new(Lease::new(FaultyRegister::new(register, faults), clock)) as Arc<dyn Backend>)
        })
    }

    /// As somebody with a tool would.
    fn delete<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let (bucket, key) = (self.lease)(on.as_str());
            self.server.put(&bucket, &key, None).await;
            Ok(true)
        })
    }

    /// Every bucket with the number of its last write.
    fn fingerprint(&self) -> Fut<'_, Result<Option<String>, StoreError>> {
        Box::pin(async move { Ok(Some(format!("{:?}", self.server.revisions().await))) })
    }
}

/// What a profile's elections are called, and what it cannot do beyond what no bucket can.
struct Profile {
    query: &'static str,
    lease: fn(&str) -> (String, String),
    without: &'static [&'static str],
}

const NATIVE: Profile =
    Profile { query: "", lease: |name| (BUCKET.to_owned(), format!("election.{name}")), without: &[] };

const LEADER: Profile = Profile {
    query: "?profile=leader&bucket=leaders",
    lease: |name| (LEADERS.to_owned(), name.to_owned()),
    without: &["elections cannot be paused"],
};

const CLUSTER: Profile = Profile {
    query: "?profile=cluster&create=yes",
    lease: |name| (cluster_bucket(name), "lease".to_owned()),
    without: &["the store cannot list its elections", "elections cannot be paused"],
};

fn cluster_bucket(name: &str) -> String {
    let in_alphabet = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let spell = |c| if in_alphabet(c) { c } else { '-' };
    let plain = name.chars().all(in_alphabet);
    format!("cluster-{}", if plain { name.to_owned() } else { shortened(name, '_', spell) })
}

async fn conforms(version: Version, profile: &Profile, settings: Value) {
    let server = Server::start(version).await;
    // The elections of the one profile, the notes of the others.
    server.bucket(BUCKET, json!({})).await;
    server.bucket(LEADERS, settings).await;
    let harness = Servers { server, query: profile.query, lease: profile.lease };
    let report = conformance::run(Arc::new(harness)).await;
    println!("{report}");
    report.assert_passed();
    for (case, why) in report.skipped() {
        let expected =
            why == "the death of a process cannot be proven" || why.contains("the store's own counter");
        assert!(expected || profile.without.contains(&why), "{case}: {why}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_current_server_conforms() {
    conforms(Version::Current, &NATIVE, json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn debians_server_conforms() {
    conforms(Version::Old, &NATIVE, json!({})).await;
}

/// On a bucket as its users have it: the server takes away what is not renewed, and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_profile_leader_conforms_on_a_current_server() {
    let minute = 60_000_000_000_u64;
    let settings = json!({ "max_age": minute, "duplicate_window": minute, "allow_msg_ttl": true, "subject_delete_marker_ttl": minute });
    conforms(Version::Current, &LEADER, settings).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_profile_leader_conforms_on_debians_server() {
    conforms(Version::Old, &LEADER, json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_profile_cluster_conforms_on_a_current_server() {
    conforms(Version::Current, &CLUSTER, json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_profile_cluster_conforms_on_debians_server() {
    conforms(Version::Old, &CLUSTER, json!({})).await;
}
