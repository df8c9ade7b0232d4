//! The profile `cluster`: the names and records of go-cluster 0.1, so that its nodes and ours are candidates in one election.
//!
//! ```text
//! cluster-<election>     the bucket, one for each election; made to keep records for two ttls
//!   lease                {"node_id","epoch","expires_at","acquired_at"}, and beside them our own record as "bellwether"
//!   cooldown-<id>        until when an id stays away: decimal Unix milliseconds
//! ```
//!
//! What holds towards nodes that know only the four fields:
//!
//! - They take `expires_at` at its word and compare it with their own clock. So it is written one ttl later than the lease ends:
//!   clocks may differ by a ttl. A release writes a lease of nobody that expired long ago, by compare-and-set.
//! - We do not take theirs at its word. Their lease counts as held for a ttl of ours from when its revision was first seen here.
//! - Whoever writes the four fields without our record has changed the lease: our record counts only while it says the same.
//!
//! No other key is ever written to such a bucket. So past leaderships are kept in the bucket for notes.

use std::time::Duration;

use bellwether_backend::names::shortened;
use bellwether_backend::{Capabilities, Note, Record, json};
use bellwether_core::{CandidateId, ElectionName, Epoch, Holder, StoreError, Wall};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::errors::{invalid, misconfigured};
use crate::layout::{Layout, NoteKey};
use crate::names::{self, CLUSTER};

const LEASE: &str = "lease";
/// Longest name of an election that is used as it is, in bytes; with what stands before it, it fits the name of a stream.
const PLAIN_MAX_BYTES: usize = 200;
/// Somebody else's epoch from here on is not believed: nobody counts that far, and to follow it would use up all there are.
const FOREIGN_EPOCH_MAX: u64 = Epoch::MAX.get() - (1 << 32);

pub(crate) struct Cluster;

/// The fields of everybody, and ours.
#[derive(Serialize)]
struct ClusterRecordOut<'a> {
    node_id: &'a str,
    epoch: u64,
    expires_at: String,
    acquired_at: String,
    bellwether: Json,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClusterRecordIn {
    node_id: Option<String>,
    epoch: Json,
    acquired_at: Json,
    bellwether: Json,
}

impl Layout for Cluster {
    fn capabilities(&self) -> Capabilities {
        // Buckets of others could not be told from these, so they are not listed. Others know no pauses, and would not keep one.
        Capabilities::REGISTER.with(|can| {
            (can.floor_outlives_record, can.lists, can.create_once) = (false, false, true);
            can.pauses = false;
        })
    }

    fn bucket(&self, on: &ElectionName) -> String {
        bucket(on)
    }

    fn buckets(&self) -> Vec<String> {
        Vec::new()
    }

    fn key(&self, _: &ElectionName) -> String {
        LEASE.to_owned()
    }

    fn note(&self, on: &ElectionName, note: &Note) -> NoteKey {
        match note {
            Note::History | Note::Once => NoteKey::Apart(names::cluster_note(on, note)),
            Note::Cooldown(id) => NoteKey::Beside(format!("cooldown-{id}")),
        }
    }

    fn admit(&self, id: &CandidateId) -> Result<(), StoreError> {
        token("the candidate's id", id.as_str())
    }

    fn least_age(&self, ttl: Duration) -> Duration {
        2 * ttl
    }

    fn made_age(&self, ttl: Duration) -> Duration {
        2 * ttl
    }

    fn owns_bucket(&self) -> bool {
        true
    }

    fn leases(&self) -> &'static str {
        LEASE
    }

    fn election(&self, _: &str, _: &str, _: &[u8]) -> Option<ElectionName> {
        None
    }

    fn print(&self, on: &ElectionName, record: &Record) -> Result<Vec<u8>, StoreError> {
        Ok(print(on, record))
    }

    fn read(&self, on: &ElectionName, value: &[u8]) -> Result<Record, StoreError> {
        let Some((record, election)) = read(value) else { return Ok(Record::unreadable()) };
        if let Some(other) = election.filter(|other| other != on.as_str()) {
            return Err(misconfigured(format!(
                "the bucket {} of the election {on} holds the election {other:?}: choose another name",
                bucket(on)
            )));
        }
        Ok(record)
    }
}

/// Refuses what cannot be one part of a subject.
pub(crate) fn token(what: &str, text: &str) -> Result<(), StoreError> {
    if !text.is_empty() && text.chars().all(in_alphabet) {
        return Ok(());
    }
    Err(invalid(format!(
        "{what} is part of a subject here, and so made of letters, digits, - and _ only: choose another than {text:?}"
    )))
}

fn bucket(on: &ElectionName) -> String {
    format!("{CLUSTER}{}", name(on))
}

/// What others call the cluster's id. Letters, digits, - and _ are used as they are; any other name becomes a readable prefix and a hash.
pub(crate) fn name(on: &ElectionName) -> String {
    let name = on.as_str();
    let plain = name.len() <= PLAIN_MAX_BYTES && name.chars().all(in_alphabet);
    if plain { name.to_owned() } else { shortened(name, '_', |c| if in_alphabet(c) { c } else { '-' }) }
}

fn in_alphabet(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

fn print(on: &ElectionName, record: &Record) -> Vec<u8> {
    let holder = record.holder.as_ref();
    let ttl = i64::try_from(record.ttl.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX);
    let renewed = record.renewed.unwrap_or_default().as_unix_nanos();
    let expires = holder.map_or(0, |_| renewed.saturating_add(ttl.saturating_mul(2)));
    let outgoing = ClusterRecordOut {
        node_id: holder.map_or("", |holder| holder.id.as_str()),
        epoch: record.epoch.unwrap_or_default().get(),
        expires_at: rfc3339_nanos(Wall::from_unix_nanos(expires)),
        acquired_at: rfc3339_nanos(record.acquired.unwrap_or_default()),
        bellwether: json::value(on, record),
    };
    serde_json::to_vec(&outgoing).expect("a record has nothing in it that JSON cannot say")
}

/// The record, and the election that it says it is of.
fn read(value: &[u8]) -> Option<(Record, Option<String>)> {
    let incoming: ClusterRecordIn = json::object(value)?;
    let node = incoming.node_id?;
    let epoch = incoming.epoch.as_u64().and_then(Epoch::new);
    let ours = json::read(incoming.bellwether.to_string().as_bytes());
    let holder = ours.record.holder.as_ref().map_or("", |holder| holder.id.as_str());
    // Ours have an epoch; two that are none are not the same.
    if !ours.record.broken && holder == node && epoch.is_some() && ours.record.epoch == epoch {
        return Some((ours.record, ours.election));
    }
    let holder = match node.as_str() {
        "" => None,
        id => Some(Holder { id: CandidateId::new(id).ok()?, incarnation: None }),
    };
    let record = Record {
        holder,
        epoch: epoch.filter(|epoch| epoch.get() < FOREIGN_EPOCH_MAX),
        acquired: incoming.acquired_at.as_str().and_then(Wall::parse),
        ..Record::default()
    };
    Some((record, None))
}

fn rfc3339_nanos(wall: Wall) -> String {
    let micros = wall.to_string();
    let nanos = wall.as_unix_nanos().rem_euclid(1_000);
    format!("{}{nanos:03}Z", micros.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests;
