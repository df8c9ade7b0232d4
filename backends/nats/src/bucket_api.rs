//! The calls that are made of JetStream, and what their answers mean. No other sentence of its API is spoken here.
//!
//! ```text
//! $JS.API.STREAM.INFO.KV_<bucket>          settings, creation time, last sequence, subjects
//! $JS.API.STREAM.CREATE.KV_<bucket>        only when asked to create
//! $JS.API.STREAM.MSG.GET.KV_<bucket>       the careful read, from the stream's leader
//! $JS.API.CONSUMER.CREATE.KV_<bucket>      the watch
//! $JS.API.STREAM.PURGE.KV_<bucket>         what is left of an election that was made to measure
//! $JS.API.STREAM.DELETE.KV_<bucket>        the same, where the bucket was made for it
//! $KV.<bucket>.<key>                       the write, at an expected revision
//! ```
//!
//! With a domain, `$JS.API` is `$JS.<domain>.API`, and the write goes to `$JS.<domain>.API.$KV.<bucket>.<key>`: leaf nodes let no `$KV`
//! through, and servers know both spellings.
//!
//! A direct get, which any replica answers however far behind it is, is not among them.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_core::Wall;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::connection::NatsConnection;
use crate::errors::{CallFailure, MESSAGE_NOT_FOUND, unavailable};
use crate::key_message::KeyMessage;

const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
const EXPECTED_STREAM: &str = "Nats-Expected-Stream";
/// Beyond what any stream counts to, and still a number to every server.
const NO_REVISION: u64 = i64::MAX as u64;
pub(crate) const OPERATION: &str = "KV-Operation";
/// What the server itself writes in the place of what expired or was removed.
const MARKER: &str = "Nats-Marker-Reason";
/// What a leader leaves in the mark of its record's deletion when it releases.
const RELEASED: &str = "Bellwether-Released";
/// How far back the server looks for repeated messages, in nanoseconds; what it does by default.
const REPEATS: u64 = 120_000_000_000;

/// A key's newest message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyEntry {
    pub(crate) revision: u64,
    pub(crate) content: Content,
}

/// What lies, or is to lie, under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Value(Vec<u8>),
    /// The mark of a deletion by a leader that released, with what it left for its successor.
    Released(String),
    /// The mark of a deletion by the server, because the record had not been renewed for the bucket's max age.
    Expired,
    /// The mark of any other deletion.
    Deleted,
}

/// A stream's settings, as far as elections mind them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StreamSettings {
    pub(crate) subjects: Vec<String>,
    pub(crate) retention: String,
    pub(crate) storage: String,
    pub(crate) discard: String,
    pub(crate) discard_new_per_subject: bool,
    pub(crate) num_replicas: u8,
    pub(crate) max_msgs: i64,
    pub(crate) max_bytes: i64,
    /// In nanoseconds.
    pub(crate) max_age: u64,
    pub(crate) max_msgs_per_subject: i64,
    pub(crate) max_consumers: i64,
    pub(crate) sealed: bool,
    pub(crate) no_ack: bool,
    pub(crate) persist_mode: Option<String>,
    pub(crate) mirror: Option<serde_json::Value>,
    pub(crate) sources: Option<Vec<serde_json::Value>>,
    pub(crate) subject_transform: Option<serde_json::Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StreamState {
    pub(crate) last_seq: u64,
    pub(crate) consumer_count: u64,
    pub(crate) subjects: Option<HashMap<String, u64>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Info {
    pub(crate) config: StreamSettings,
    pub(crate) created: String,
    #[serde(default)]
    pub(crate) state: StreamState,
}

impl Info {
    /// When the stream was created, in microseconds of Unix time.
    pub(crate) fn created_micros(&self) -> Option<u64> {
        u64::try_from(Wall::parse(&self.created)?.as_unix_nanos() / 1_000).ok()
    }
}

/// The subjects of one bucket, and the calls.
pub(crate) struct BucketApi<'a> {
    pub(crate) connection: &'a NatsConnection,
    pub(crate) bucket: &'a str,
    pub(crate) limit: Duration,
}

impl BucketApi<'_> {
    pub(crate) async fn info(&self, subjects: Option<&str>) -> Result<Info, CallFailure> {
        let body = match subjects {
            Some(filter) => json!({ "subjects_filter": subject(self.bucket, filter) }),
            None => json!({}),
        };
        self.api("STREAM.INFO", &body).await
    }

    /// Records are kept for `max_age` nanoseconds, with 0 for good.
    pub(crate) async fn create(&self, replicas: u8, max_age: u64) -> Result<Info, CallFailure> {
        // The server refuses to look for repeated messages further back than it keeps them.
        let window = if max_age == 0 { REPEATS } else { REPEATS.min(max_age) };
        // As every tool makes a bucket, so that every tool can read it.
        let body = json!({
            "name": stream(self.bucket),
            "subjects": [subject(self.bucket, ">")],
            "description": "leader elections of Bellwether",
            "max_msgs_per_subject": 1,
            "num_replicas": replicas,
            "storage": "file",
            "retention": "limits",
            "discard": "new",
            "max_age": max_age,
            "max_msgs": -1,
            "max_bytes": -1,
            "max_msg_size": -1,
            "max_consumers": -1,
            "duplicate_window": window,
            "allow_rollup_hdrs": true,
            "deny_delete": true,
            "allow_direct": true,
        });
        self.api("STREAM.CREATE", &body).await
    }

    /// From the stream's leader, or not at all.
    pub(crate) async fn last(&self, key: &str) -> Result<Option<KeyEntry>, CallFailure> {
        Ok(self.last_message(key).await?.map(|message| {
            let content = mark(|name| message.header(name));
            KeyEntry {
                revision: message.revision,
                content: content.unwrap_or(Content::Value(message.payload)),
            }
        }))
    }

    /// The same, with every header.
    pub(crate) async fn last_message(&self, key: &str) -> Result<Option<KeyMessage>, CallFailure> {
        #[derive(Deserialize)]
        struct Got {
            message: Stored,
        }
        #[derive(Deserialize)]
        struct Stored {
            seq: u64,
            #[serde(default)]
            data: String,
            #[serde(default)]
            hdrs: String,
        }
        let got: Result<Got, CallFailure> =
            self.api("STREAM.MSG.GET", &json!({ "last_by_subj": subject(self.bucket, key) })).await;
        let stored = match got {
            Ok(got) => got.message,
            Err(failure) if failure.is(MESSAGE_NOT_FOUND) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let unread = |_| CallFailure::NoAnswer(unavailable("the server's answer cannot be read"));
        let headers = String::from_utf8_lossy(&STANDARD.decode(stored.hdrs).map_err(unread)?).into_owned();
        let payload = STANDARD.decode(stored.data).map_err(unread)?;
        Ok(Some(KeyMessage::new(stored.seq, headers, payload)))
    }

    /// Writes if the key's newest message has this revision, 0 if there is none. The answer is the new revision.
    pub(crate) async fn put(&self, key: &str, expected: u64, content: Content) -> Result<u64, CallFailure> {
        let mut headers = HeaderMap::new();
        let value = match content {
            Content::Value(value) => value,
            Content::Released(said) => {
                headers.insert(OPERATION, "DEL");
                headers.insert(RELEASED, said);
                Vec::new()
            }
            Content::Expired | Content::Deleted => {
                headers.insert(OPERATION, "PURGE");
                headers.insert("Nats-Rollup", "sub");
                Vec::new()
            }
        };
        self.publish(key, expected, headers, value).await
    }

    /// Sends a write that no stream accepts: it names another stream, and a revision that no key can have. Whatever JetStream answers to
    /// it, a write would have arrived.
    pub(crate) async fn rehearse(&self, key: &str) -> Result<(), CallFailure> {
        let mut headers = HeaderMap::new();
        headers.insert(EXPECTED_STREAM, "none");
        match self.publish(key, NO_REVISION, headers, Vec::new()).await {
            Err(CallFailure::Said(..)) => Ok(()),
            Err(failure) => Err(failure),
            Ok(revision) => {
                tracing::error!(key, revision, "a write that could not succeed did; please report it");
                Ok(())
            }
        }
    }

    /// Takes every message of this key up to that revision away, marks included; later ones stay.
    pub(crate) async fn forget(&self, key: &str, revision: u64) -> Result<(), CallFailure> {
        let body = json!({ "filter": subject(self.bucket, key), "seq": revision + 1 });
        let _: serde_json::Value = self.api("STREAM.PURGE", &body).await?;
        Ok(())
    }

    /// Removes the bucket with everything in it.
    pub(crate) async fn remove(&self) -> Result<(), CallFailure> {
        let _: serde_json::Value = self.api("STREAM.DELETE", &json!({})).await?;
        Ok(())
    }

    /// A consumer that sends the newest message of every key that matches, and then every change. The answer is how many
    /// there are to begin with.
    pub(crate) async fn watch(
        &self,
        filter: &str,
        deliver_to: &str,
        heartbeat: Duration,
    ) -> Result<u64, CallFailure> {
        #[derive(Deserialize)]
        struct Made {
            #[serde(default)]
            num_pending: u64,
        }
        let body = json!({
            "stream_name": stream(self.bucket),
            "config": {
                "deliver_subject": deliver_to,
                "deliver_policy": "last_per_subject",
                "filter_subject": subject(self.bucket, filter),
                "ack_policy": "none",
                "max_deliver": 1,
                "replay_policy": "instant",
                "idle_heartbeat": u64::try_from(heartbeat.as_nanos()).unwrap_or(u64::MAX),
                "inactive_threshold": 5_000_000_000_u64,
                "num_replicas": 1,
                "mem_storage": true,
            },
        });
        let made: Made = self.api("CONSUMER.CREATE", &body).await?;
        Ok(made.num_pending)
    }

    pub(crate) async fn publish(
        &self,
        key: &str,
        expected: u64,
        mut headers: HeaderMap,
        value: Vec<u8>,
    ) -> Result<u64, CallFailure> {
        #[derive(Deserialize)]
        struct Done {
            seq: u64,
        }
        headers.insert(EXPECTED, expected.to_string());
        let done: Done = self.ask(&self.write_subject(key), headers, value).await?;
        Ok(done.seq)
    }

    async fn api<T: DeserializeOwned>(&self, call: &str, body: &impl Serialize) -> Result<T, CallFailure> {
        let api = match &self.connection.config().domain {
            None => "$JS.API".to_owned(),
            Some(domain) => format!("$JS.{domain}.API"),
        };
        let unread =
            |error| CallFailure::NoAnswer(unavailable("the request cannot be written").caused_by(error));
        let body = serde_json::to_vec(body).map_err(unread)?;
        let answer = self.ask(&format!("{api}.{call}.{}", stream(self.bucket)), HeaderMap::new(), body).await;
        answer.map_err(|failure| match failure {
            CallFailure::NobodyListens => CallFailure::NoJetStream(self.connection.config().domain.clone()),
            other => other,
        })
    }

    /// Where a write of this key is published to.
    fn write_subject(&self, key: &str) -> String {
        let subject = subject(self.bucket, key);
        match &self.connection.config().domain {
            None => subject,
            Some(domain) => format!("$JS.{domain}.API.{subject}"),
        }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        subject: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<T, CallFailure> {
        #[derive(Deserialize)]
        struct ErrorAnswer {
            error: ErrorBody,
        }
        #[derive(Deserialize)]
        struct ErrorBody {
            #[serde(default)]
            err_code: u64,
            #[serde(default)]
            description: String,
        }
        let answer = self.connection.request(subject, headers, body, self.limit).await?;
        if let Ok(ErrorAnswer { error }) = serde_json::from_slice(&answer.payload) {
            return Err(CallFailure::Said(error.err_code, error.description));
        }
        serde_json::from_slice(&answer.payload).map_err(|error| {
            CallFailure::NoAnswer(unavailable("the server's answer cannot be read").caused_by(error))
        })
    }
}

/// What a message that came over a watch says.
pub(crate) fn content(headers: Option<&HeaderMap>, payload: &[u8]) -> Content {
    let said = |name: &str| Some(headers?.get(name)?.as_str().to_owned());
    mark(said).unwrap_or_else(|| Content::Value(payload.to_vec()))
}

/// The mark that a message with these headers is; `None`: it is none.
pub(crate) fn mark(said: impl Fn(&str) -> Option<String>) -> Option<Content> {
    if let Some(reason) = said(MARKER) {
        return Some(if reason == "MaxAge" { Content::Expired } else { Content::Deleted });
    }
    match said(OPERATION)?.as_str() {
        "DEL" | "PURGE" => Some(said(RELEASED).map_or(Content::Deleted, Content::Released)),
        _ => None,
    }
}

pub(crate) fn stream(bucket: &str) -> String {
    format!("KV_{bucket}")
}

pub(crate) fn subject(bucket: &str, key: &str) -> String {
    format!("$KV.{bucket}.{key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_deletions_are_told_from_values() {
        for (headers, expected) in [
            (vec![(OPERATION, "DEL")], Some(Content::Deleted)),
            (vec![(OPERATION, "PURGE")], Some(Content::Deleted)),
            (vec![(OPERATION, "PUT")], None),
            (vec![(OPERATION, "DEL"), (RELEASED, "{}")], Some(Content::Released("{}".to_owned()))),
            (vec![(RELEASED, "{}")], None),
            (vec![(MARKER, "MaxAge")], Some(Content::Expired)),
            (vec![(MARKER, "Remove")], Some(Content::Deleted)),
            (vec![], None),
        ] {
            let said = |name: &str| headers.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            assert_eq!(mark(said), expected, "{headers:?}");
        }
    }

    #[test]
    fn the_creation_time_is_read_to_the_microsecond() {
        let info: Info =
            serde_json::from_value(json!({ "config": {}, "created": "2026-01-01T00:00:00.123456789Z" }))
                .unwrap();
        assert_eq!(info.created_micros(), Some(1_767_225_600_123_456));
    }
}
