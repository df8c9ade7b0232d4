//! A node of somebody else's that does as those of go-cluster 0.1 do, and knows nothing of ours: it judges a lease by `expires_at` and
//! its own wall clock, takes one that has run out with the next epoch, and one under its own id at once and with the same epoch; it reads
//! before it renews, steps down by a cooldown and a deletion that expects no revision, and lets nothing go when it stops. Its times
//! have nanoseconds and the offset of its zone.

use std::time::Duration;

use async_nats::{Client, HeaderMap};
use bellwether_core::{Boot, Clock, Wall};
use bellwether_deadman::{SystemClock, boot_now};
use bellwether_support::servers::nats::Server;
use serde_json::{Value, json};

const LEASE: &str = "lease";

pub(crate) struct Foreign {
    client: Client,
    bucket: String,
    pub(crate) id: &'static str,
    pub(crate) ttl: Duration,
    /// How far its wall clock is ahead, in milliseconds.
    pub(crate) ahead_ms: i64,
}

/// What it holds.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) epoch: i64,
    pub(crate) acquired_at: String,
    /// It believes until then, and no longer.
    pub(crate) until: Boot,
}

impl Foreign {
    pub(crate) async fn new(server: &Server, bucket: &str, id: &'static str, ttl: Duration) -> Foreign {
        Foreign { client: server.admin().await, bucket: bucket.to_owned(), id, ttl, ahead_ms: 0 }
    }

    fn now(&self) -> i64 {
        SystemClock.wall().as_unix_nanos() + self.ahead_ms * 1_000_000
    }

    /// The lease and its revision; `None` where the key is not there or was deleted.
    pub(crate) async fn get(&self) -> (Option<Value>, u64) {
        let body = json!({ "last_by_subj": format!("$KV.{}.{LEASE}", self.bucket) });
        let call = format!("$JS.API.STREAM.MSG.GET.KV_{}", self.bucket);
        let got = self.client.request(call, body.to_string().into()).await.expect("an answer");
        let got: Value = serde_json::from_slice(&got.payload).expect("JSON");
        let revision = got["message"]["seq"].as_u64().unwrap_or(0);
        let data = got["message"]["data"].as_str().unwrap_or_default();
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).expect("base64");
        (serde_json::from_slice(&bytes).ok(), revision)
    }

    /// Acquires if the lease is its own, or free by its own clock.
    pub(crate) async fn acquire(&self) -> Option<Held> {
        let (lease, revision) = self.get().await;
        let epoch = match &lease {
            None => 1,
            Some(lease) => {
                let own = lease["node_id"] == self.id;
                let expires = Wall::parse(lease["expires_at"].as_str()?)?.as_unix_nanos();
                if !own && self.now() <= expires {
                    return None;
                }
                lease["epoch"].as_i64()? + i64::from(!own)
            }
        };
        self.write(revision, epoch, printed(self.now())).await
    }

    /// Renews what it reads, if that has its id and its epoch; `None` when it has not, or when somebody has written since.
    pub(crate) async fn renew(&self, held: &Held) -> Option<Held> {
        let (lease, revision) = self.get().await;
        lease.filter(|lease| lease["node_id"] == self.id && lease["epoch"] == held.epoch)?;
        self.write(revision, held.epoch, held.acquired_at.clone()).await
    }

    /// Stays away for a lease, and deletes the lease, whoever holds it by now.
    pub(crate) async fn step_down(&self) {
        let until = self.now() / 1_000_000 + i64::try_from(self.ttl.as_millis()).expect("a short lease");
        let cooldown = format!("cooldown-{}", self.id);
        self.publish(&cooldown, HeaderMap::new(), until.to_string()).await.expect("nothing is compared");
        let mut deleted = HeaderMap::new();
        deleted.insert("KV-Operation", "DEL");
        self.publish(LEASE, deleted, String::new()).await.expect("nothing is compared");
    }

    async fn write(&self, at: u64, epoch: i64, acquired_at: String) -> Option<Held> {
        let until = boot_now() + self.ttl;
        let expires_at = printed(self.now() + self.ttl.as_nanos() as i64);
        let lease = json!({
            "node_id": self.id, "epoch": epoch, "expires_at": expires_at, "acquired_at": acquired_at
        });
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", at.to_string());
        self.publish(LEASE, headers, lease.to_string()).await?;
        Some(Held { epoch, acquired_at, until })
    }

    async fn publish(&self, key: &str, headers: HeaderMap, text: String) -> Option<u64> {
        let subject = format!("$KV.{}.{key}", self.bucket);
        let done = self.client.request_with_headers(subject, headers, text.into()).await;
        let done: Value = serde_json::from_slice(&done.expect("an answer").payload).expect("JSON");
        if done["error"].is_null() {
            return done["seq"].as_u64();
        }
        assert_eq!(done["error"]["err_code"], 10_071, "{done}");
        None
    }
}

/// As Go prints a time of a machine in Kolkata: nanoseconds without the zeros at their end.
fn printed(nanos: i64) -> String {
    let local = Wall::from_unix_nanos(nanos + 19_800 * 1_000_000_000).to_string();
    let fraction = format!(".{:09}", nanos.rem_euclid(1_000_000_000));
    format!("{}{}+05:30", &local[..19], fraction.trim_end_matches('0').trim_end_matches('.'))
}
