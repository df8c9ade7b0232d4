//! The profile `leader`: a bucket and a key of the user's own, and the record that other candidates on NATS keep there.
//!
//! ```text
//! B / leaders/control     {"id", "token", "priority", "meta", "bellwether": {…}}      held
//!                         mark of a deletion, Bellwether-Released: {…}                released
//! ```
//!
//! The first four fields are the format of others, who ignore the fifth; in it is our own record, without what stands beside it. A
//! release deletes the key, as others do and wait for, by compare-and-set; the mark of that deletion keeps the epoch and a
//! reservation for those who can read it.
//!
//! A record is one of ours only if its token is the one that its incarnation and epoch make. Whatever else has an id is somebody
//! else's, ours with another token included: that is how a token changed by hand ends a leadership. It has no incarnation,
//! no epoch, and the bucket's max age for a ttl, or the reader's own where there is none.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_backend::{Capabilities, Note, Record, json};
use bellwether_core::{CandidateId, ElectionName, Epoch, ErrorKind, Holder, Incarnation, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::errors::{BACKEND, misconfigured};
use crate::layout::{Layout, NoteKey};
use crate::names;

/// A record is some hundred bytes; what is larger than this is none, and is not taken apart to find out.
const RECORD_MAX_BYTES: usize = 64 * 1024;

pub(crate) struct Leader {
    pub(crate) bucket: String,
    /// The key of every election, where one was named.
    pub(crate) group: Option<String>,
}

#[derive(Serialize)]
struct LeaderRecordOut<'a> {
    id: &'a str,
    token: String,
    priority: i32,
    meta: &'a BTreeMap<String, String>,
    bellwether: Json,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LeaderRecordIn {
    id: Option<String>,
    token: Json,
    priority: Json,
    meta: Json,
    bellwether: Json,
}

impl Layout for Leader {
    /// As ever, but without pauses: others know none, and would not keep one.
    fn capabilities(&self) -> Capabilities {
        Capabilities::REGISTER
            .with(|can| (can.floor_outlives_record, can.create_once, can.pauses) = (false, true, false))
    }

    fn bucket(&self, _: &ElectionName) -> String {
        self.bucket.clone()
    }

    fn buckets(&self) -> Vec<String> {
        vec![self.bucket.clone()]
    }

    fn key(&self, on: &ElectionName) -> String {
        self.group.clone().unwrap_or_else(|| names::bare(on))
    }

    /// The bucket is the user's: no key is added to it.
    fn note(&self, on: &ElectionName, note: &Note) -> NoteKey {
        let key = match note {
            // A group gives all elections one key; a note has its own name.
            Note::Once => on.as_str().to_owned(),
            Note::History | Note::Cooldown(_) => self.key(on),
        };
        NoteKey::Apart(names::leader_note(&self.bucket, &key, note))
    }

    /// As others expect it: what is not renewed goes away by itself.
    fn made_age(&self, ttl: Duration) -> Duration {
        ttl
    }

    fn others_go_by_age(&self) -> bool {
        true
    }

    fn leases(&self) -> &'static str {
        ">"
    }

    /// What has an id and a token is an election, whatever else there is in the bucket.
    fn election(&self, _: &str, key: &str, value: &[u8]) -> Option<ElectionName> {
        if self.group.as_deref().is_some_and(|group| group != key) {
            return None;
        }
        let is_election = |incoming: &LeaderRecordIn| incoming.id.is_some() && incoming.token.is_string();
        let incoming = parsed(value).filter(is_election)?;
        let told = own(&incoming.bellwether).election.and_then(|name| ElectionName::new(name).ok());
        let told = told.filter(|name| self.group.is_some() || names::bare(name) == key);
        told.or_else(|| ElectionName::new(key).ok())
    }

    fn print(&self, on: &ElectionName, record: &Record) -> Result<Vec<u8>, StoreError> {
        let (holder, epoch) = record
            .holder
            .as_ref()
            .zip(record.epoch)
            .ok_or_else(|| bug("a record without holder or epoch"))?;
        let incarnation =
            holder.incarnation.ok_or_else(|| bug("a record of somebody else was to be written"))?;
        let outgoing = LeaderRecordOut {
            id: holder.id.as_str(),
            token: token(incarnation, epoch),
            priority: record.priority.unwrap_or(0),
            meta: &record.metadata,
            bellwether: rest(on, record),
        };
        Ok(serde_json::to_vec(&outgoing).expect("a record has nothing in it that JSON cannot say"))
    }

    fn read(&self, on: &ElectionName, value: &[u8]) -> Result<Record, StoreError> {
        let Some(incoming) = parsed(value) else { return Ok(Record::unreadable()) };
        let id = incoming.id.as_deref().unwrap_or_default();
        let Ok(id) = CandidateId::new(id) else { return Ok(Record::unreadable()) };
        let priority = incoming.priority.as_i64().and_then(|priority| i32::try_from(priority).ok());
        let own = own(&incoming.bellwether);
        if is_ours(&own.record, &id, &incoming.token) {
            same_election(on, own.election)?;
            return Ok(Record { priority, metadata: metadata(incoming.meta), ..own.record });
        }
        let holder = Some(Holder { id, incarnation: None });
        Ok(Record { holder, priority, metadata: metadata(incoming.meta), ..Record::default() })
    }

    fn print_released(&self, on: &ElectionName, record: &Record) -> Option<String> {
        Some(rest(on, record).to_string())
    }

    fn read_released(&self, on: &ElectionName, said: &str) -> Result<Option<Record>, StoreError> {
        if said.len() > RECORD_MAX_BYTES {
            return Ok(None);
        }
        let json::Read { record, election } = json::read(said.as_bytes());
        // A mark that claims to be held says nothing that could be true.
        if record.is_held() || record.epoch.is_none() {
            return Ok(None);
        }
        same_election(on, election)?;
        Ok(Some(record))
    }
}

/// Our own record, without what stands beside it.
fn rest(on: &ElectionName, record: &Record) -> Json {
    json::value(on, &Record { priority: None, metadata: BTreeMap::new(), ..record.clone() })
}

fn parsed(value: &[u8]) -> Option<LeaderRecordIn> {
    if value.len() > RECORD_MAX_BYTES {
        return None;
    }
    json::object(value)
}

/// What the fifth field says; nonsense where there is none.
fn own(field: &Json) -> json::Read {
    match serde_json::to_vec(field) {
        Ok(bytes) if field.is_object() => json::read(&bytes),
        _ => json::Read::nonsense(),
    }
}

fn is_ours(record: &Record, id: &CandidateId, said: &Json) -> bool {
    let (Some(holder), Some(epoch), Some(_)) = (&record.holder, record.epoch, record.ttl) else {
        return false;
    };
    let made = holder.incarnation.map(|incarnation| token(incarnation, epoch));
    holder.id == *id && made.is_some() && said.as_str() == made.as_deref()
}

fn same_election(on: &ElectionName, told: Option<String>) -> Result<(), StoreError> {
    match told.filter(|other| other != on.as_str()) {
        None => Ok(()),
        Some(other) => Err(misconfigured(format!(
            "the key of the election {on} holds the election {other:?}: give all candidates of one key the same name of \
             the election"
        ))),
    }
}

/// For readers; what is no text is shown as JSON.
fn metadata(meta: Json) -> BTreeMap<String, String> {
    let Json::Object(fields) = meta else { return BTreeMap::new() };
    let text = |value| if let Json::String(text) = value { text } else { value.to_string() };
    fields.into_iter().map(|(name, value)| (name, text(value))).collect()
}

/// The token of a leadership: unique, because the incarnation is random and its epochs differ. Laid out as a UUID of version 8, whose
/// bits are the writer's own: 48 of the epoch, 74 of the incarnation.
pub(crate) fn token(incarnation: Incarnation, epoch: Epoch) -> String {
    let hex = incarnation.to_string();
    let epoch = epoch.get() & 0xffff_ffff_ffff;
    let variant = match hex.as_bytes()[31] & 3 {
        0 => '8',
        1 => '9',
        2 => 'a',
        _ => 'b',
    };
    format!(
        "{:08x}-{:04x}-8{}-{variant}{}-{}",
        epoch >> 16,
        epoch & 0xffff,
        &hex[..3],
        &hex[3..6],
        &hex[6..18]
    )
}

fn bug(sentence: &'static str) -> StoreError {
    StoreError::new(ErrorKind::Bug, BACKEND, sentence)
}

#[cfg(test)]
mod tests;
