//! Candidates on a server of the test's own.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses a part")]

pub mod foreign;
pub mod other;
pub mod stage;

use std::time::Duration;

use bellwether_nats::{Nats, from_url};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{Actor, clock};
use serde_json::{Value, json};

pub const BUCKET: &str = "bellwether";
pub const TTL: Duration = Duration::from_secs(2);
pub const PATIENCE: Duration = Duration::from_secs(30);

pub async fn server_with_bucket() -> Server {
    let server = Server::start(Version::Current).await;
    server.bucket(BUCKET, json!({})).await;
    server
}

pub fn actor(url: &str, id: &str) -> Actor<Nats> {
    Actor::new(from_url(url, clock()).unwrap(), id, TTL)
}

/// The bucket of the election `reports` in the profile `cluster`.
pub const CLUSTER: &str = "cluster-reports";

/// The profile `cluster` on this server.
pub fn cluster(server: &Server) -> String {
    format!("{}?profile=cluster&create=yes", server.url())
}

/// The user's bucket and key in the profile `leader`.
pub const LEADERS: &str = "leaders";
pub const KEY: &str = "reports";

/// A server with a bucket as users of the profile `leader` have it: the server takes away what is not renewed for `age`; zero
/// is for good.
pub async fn server_for_leaders(version: Version, age: Duration) -> Server {
    let server = Server::start(version).await;
    server.bucket(LEADERS, aged(age)).await;
    server
}

/// The settings of a bucket with this max age.
pub fn aged(age: Duration) -> Value {
    let nanos = u64::try_from(age.as_nanos()).unwrap();
    json!({ "max_age": nanos, "duplicate_window": nanos })
}

/// The profile `leader` by this port.
pub fn leaders(port: u16) -> String {
    format!("nats://127.0.0.1:{port}?profile=leader&bucket={LEADERS}&ping=200ms&timeout=500ms")
}
