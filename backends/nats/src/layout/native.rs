//! The native profile: one bucket for all elections, and records that have every field.
//!
//! No server-side expiry is used: followers time the lease on their own clocks, so a bucket of any age of server will do and a
//! ttl may be shorter than a second.

use bellwether_backend::{Note, Record, json};
use bellwether_core::{ElectionName, StoreError};

use crate::errors::misconfigured;
use crate::layout::{Layout, NoteKey};
use crate::names;

pub(crate) struct Native {
    pub(crate) bucket: String,
}

impl Layout for Native {
    fn bucket(&self, _: &ElectionName) -> String {
        self.bucket.clone()
    }

    fn buckets(&self) -> Vec<String> {
        vec![self.bucket.clone()]
    }

    fn key(&self, on: &ElectionName) -> String {
        names::lease(on)
    }

    fn note(&self, on: &ElectionName, note: &Note) -> NoteKey {
        NoteKey::Beside(names::note(on, note))
    }

    fn leases(&self) -> &'static str {
        names::LEASES
    }

    fn election(&self, _: &str, key: &str, value: &[u8]) -> Option<ElectionName> {
        names::election(key, json::read(value).election.as_deref())
    }

    fn print(&self, on: &ElectionName, record: &Record) -> Result<Vec<u8>, StoreError> {
        Ok(json::print(on, record))
    }

    fn read(&self, on: &ElectionName, value: &[u8]) -> Result<Record, StoreError> {
        let read = json::read(value);
        if let Some(other) = read.election.filter(|other| other != on.as_str()) {
            return Err(misconfigured(format!(
                "the key of the election {on} holds the election {other:?}: it was copied, or their names have the same hash; \
                 choose another name"
            )));
        }
        Ok(read.record)
    }
}
