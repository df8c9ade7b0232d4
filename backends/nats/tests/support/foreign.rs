//! A node of somebody else's, written after the description of go-cluster and knowing nothing of ours: it judges a lease by
//! `expires_at` and its own wall clock, creates and updates at an expected revision, takes over with the next epoch, and steps down
//! by a lease of nobody.

use std::time::Duration;

use async_nats::{Client, HeaderMap};
use bellwether_core::{Boot, Clock, Wall};
use bellwether_deadman::{SystemClock, boot_now};
use bellwether_support::servers::nats::Server;
use serde_json::{Value, json};

pub struct Foreign {
    client: Client,
    bucket: String,
    pub id: &'static str,
    pub ttl: Duration,
    /// How far its wall clock is ahead, in milliseconds.
    pub ahead_ms: i64,
}

/// What it holds.
#[derive(Clone, Debug)]
pub struct Held {
    pub revision: u64,
    pub epoch: i64,
    pub acquired_at: String,
    /// It believes until then, and no longer.
    pub until: Boot,
}

impl Foreign {
    pub async fn new(server: &Server, bucket: &str, id: &'static str, ttl: Duration) -> Foreign {
        Foreign { client: server.admin().await, bucket: bucket.to_owned(), id, ttl, ahead_ms: 0 }
    }

    fn now(&self) -> i64 {
        SystemClock.wall().as_unix_nanos() + self.ahead_ms * 1_000_000
    }

    /// The lease and its revision; `None` where the key is not there or was deleted.
    pub async fn get(&self) -> (Option<Value>, u64) {
        let body = json!({ "last_by_subj": format!("$KV.{}.lease", self.bucket) });
        let call = format!("$JS.API.STREAM.MSG.GET.KV_{}", self.bucket);
        let got = self.client.request(call, body.to_string().into()).await.expect("an answer");
        let got: Value = serde_json::from_slice(&got.payload).expect("JSON");
        let revision = got["message"]["seq"].as_u64().unwrap_or(0);
        let data = got["message"]["data"].as_str().unwrap_or_default();
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).expect("base64");
        (serde_json::from_slice(&bytes).ok(), revision)
    }

    /// Acquires if the lease is free by its own clock.
    pub async fn acquire(&self) -> Option<Held> {
        let (lease, revision) = self.get().await;
        let epoch = match &lease {
            None => 1,
            Some(lease) => {
                let expires = Wall::parse(lease["expires_at"].as_str()?)?.as_unix_nanos();
                if lease["node_id"] != "" && self.now() <= expires {
                    return None;
                }
                lease["epoch"].as_i64()? + 1
            }
        };
        let acquired_at = Wall::from_unix_nanos(self.now()).to_string();
        self.write(self.id, revision, epoch, acquired_at).await
    }

    /// Renews at the expected revision; `None` when somebody has written since.
    pub async fn renew(&self, held: &Held) -> Option<Held> {
        self.write(self.id, held.revision, held.epoch, held.acquired_at.clone()).await
    }

    /// A lease of nobody, with the same epoch, expired.
    pub async fn step_down(&self, held: &Held) -> bool {
        self.put("", held.revision, held.epoch, &held.acquired_at, self.now() - 1).await.is_some()
    }

    async fn write(&self, id: &str, revision: u64, epoch: i64, acquired_at: String) -> Option<Held> {
        let until = boot_now() + self.ttl;
        let expires = self.now() + self.ttl.as_nanos() as i64;
        let revision = self.put(id, revision, epoch, &acquired_at, expires).await?;
        Some(Held { revision, epoch, acquired_at, until })
    }

    async fn put(&self, id: &str, at: u64, epoch: i64, acquired_at: &str, expires: i64) -> Option<u64> {
        let expires_at = Wall::from_unix_nanos(expires).to_string();
        let lease =
            json!({ "node_id": id, "epoch": epoch, "expires_at": expires_at, "acquired_at": acquired_at });
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", at.to_string());
        let subject = format!("$KV.{}.lease", self.bucket);
        let done = self.client.request_with_headers(subject, headers, lease.to_string().into()).await;
        let done: Value = serde_json::from_slice(&done.expect("an answer").payload).expect("JSON");
        if done["error"].is_null() {
            return done["seq"].as_u64();
        }
        assert_eq!(done["error"]["err_code"], 10_071, "{done}");
        None
    }
}
