//! Candidates on a server of the test's own.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses a part")]

pub mod foreign;

use std::time::Duration;

use bellwether_nats::{Nats, from_url};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{Actor, clock};
use serde_json::json;

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
