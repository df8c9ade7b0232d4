//! A server with a bucket, and connections to it.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{ElectionName, Epoch};
use bellwether_fence::nats::{Config, FencedKey, Keys};
use bellwether_fence::{FenceError, Stamp};
use bellwether_support::servers::nats::{Server, Version};
use serde_json::{Value, json};

pub(crate) const BUCKET: &str = "settings";
pub(crate) const KEY: &str = "routes";

pub(crate) fn election() -> ElectionName {
    ElectionName::new("reports №1").unwrap()
}

pub(crate) fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

pub(crate) fn stamp(number: u64) -> Option<Stamp> {
    Some(Stamp::new(election(), epoch(number)))
}

/// With a bucket that keeps every message, so that the order of all writes shows.
pub(crate) async fn server(version: Version) -> Server {
    let server = Server::start(version).await;
    server.bucket(BUCKET, json!({ "max_msgs_per_subject": -1 })).await;
    server
}

/// The key, on a connection of its own to this port.
pub(crate) fn key_through(port: u16, limit: Duration) -> FencedKey {
    let url = format!("nats://127.0.0.1:{port}?bucket={BUCKET}");
    let keys = Keys::new(Config::from_url(&url).unwrap()).within(limit);
    FencedKey::new(Arc::new(keys), KEY, election())
}

pub(crate) fn key(server: &Server) -> FencedKey {
    key_through(server.port(), Duration::from_secs(5))
}

/// The epochs of a refusal, mine and the latest.
pub(crate) fn refused<T: std::fmt::Debug>(written: Result<T, FenceError>) -> (u64, u64) {
    let fenced = written.unwrap_err().fenced().expect("fenced");
    (fenced.mine.get(), fenced.latest.get())
}

/// What happens while a write has looked and not yet written.
pub(crate) fn meanwhile<T>(what: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(what))
}

/// One message as the server keeps it: headers in lines, and the payload.
pub(crate) async fn message(server: &Server, which: Value) -> Option<(String, Vec<u8>)> {
    let got = server.api(&format!("STREAM.MSG.GET.KV_{BUCKET}"), which).await;
    let message = got.get("message")?;
    let bytes = |field: &str| {
        let text = message[field].as_str().unwrap_or_default();
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).unwrap()
    };
    Some((String::from_utf8(bytes("hdrs")).unwrap(), bytes("data")))
}
