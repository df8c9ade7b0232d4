//! Candidates on a server of the test's own.

pub(crate) mod foreign;
pub(crate) mod operator;
pub(crate) mod other;
pub(crate) mod stage;

use std::time::Duration;

use bellwether_nats::{Nats, from_url};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{Actor, clock};
use serde_json::{Value, json};

pub(crate) const BUCKET: &str = "bellwether";
pub(crate) const TTL: Duration = Duration::from_secs(2);
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn server_with_bucket() -> Server {
    let server = Server::start(Version::Current).await;
    server.bucket(BUCKET, json!({})).await;
    server
}

pub(crate) fn actor(url: &str, id: &str) -> Actor<Nats> {
    Actor::new(from_url(url, clock()).unwrap(), id, TTL)
}

/// The bucket of the election `reports` in the profile `cluster`.
pub(crate) const CLUSTER: &str = "cluster-reports";

/// The profile `cluster` on this server.
pub(crate) fn cluster(server: &Server) -> String {
    format!("{}?profile=cluster&create=yes", server.url())
}

/// The user's bucket and key in the profile `leader`.
pub(crate) const LEADERS: &str = "leaders";
pub(crate) const KEY: &str = "reports";

/// A server with a bucket as users of the profile `leader` have it: the server takes away what is not renewed for `age`; zero
/// is for good.
pub(crate) async fn server_for_leaders(version: Version, age: Duration) -> Server {
    let server = Server::start(version).await;
    server.bucket(LEADERS, aged(age)).await;
    server
}

/// The settings of a bucket with this max age.
pub(crate) fn aged(age: Duration) -> Value {
    let nanos = u64::try_from(age.as_nanos()).unwrap();
    json!({ "max_age": nanos, "duplicate_window": nanos })
}

/// The profile `leader` by this port.
pub(crate) fn leaders(port: u16) -> String {
    format!("nats://127.0.0.1:{port}?profile=leader&bucket={LEADERS}&ping=200ms&timeout=500ms")
}
