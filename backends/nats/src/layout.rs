//! What a profile decides: names of buckets and keys, and the shape of a record.
//!
//! Everything else (the connection, reading and writing at a revision, the watch, epochs) is the same for all of them and
//! knows no profile.

pub(crate) mod cluster;
pub(crate) mod leader;
pub(crate) mod native;

use std::time::Duration;

use bellwether_backend::{Capabilities, Note, Record};
use bellwether_core::{CandidateId, ElectionName, StoreError};

/// The key of a note, and which bucket it is a key of.
#[derive(Debug)]
pub(crate) enum NoteKey {
    /// That of the election.
    Beside(String),
    /// The one for notes: the election's own bucket is somebody else's, too.
    Apart(String),
}

/// Names and records of a profile.
#[expect(unused_variables, reason = "the default of an optional method ignores what it is given")]
pub(crate) trait Layout: Send + Sync {
    /// After a deletion, epochs come from the stream's own counter. A bucket that forgets is refused when a create-once note is asked for.
    fn capabilities(&self) -> Capabilities {
        Capabilities::REGISTER.with(|can| (can.floor_outlives_record, can.create_once) = (false, true))
    }

    /// The bucket that an election is held in.
    fn bucket(&self, on: &ElectionName) -> String;

    /// All buckets there may be elections in, where that is known.
    fn buckets(&self) -> Vec<String>;

    /// The key of the lease.
    fn key(&self, on: &ElectionName) -> String;

    /// Where a note lies.
    fn note(&self, on: &ElectionName, note: &Note) -> NoteKey;

    /// Whether an id can be written as the profile writes it; if not, why.
    fn admit(&self, id: &CandidateId) -> Result<(), StoreError> {
        Ok(())
    }

    /// How long a bucket must at least keep a record for a lease of this length, unless it keeps it for good.
    fn least_age(&self, ttl: Duration) -> Duration {
        ttl
    }

    /// How long a bucket that is made for leases of this length keeps them; zero is for good.
    fn made_age(&self, ttl: Duration) -> Duration {
        Duration::ZERO
    }

    /// Whether records without a ttl are of others who go by the bucket's max age.
    fn others_go_by_age(&self) -> bool {
        false
    }

    /// Whether a bucket is of one election and of nothing else.
    fn owns_bucket(&self) -> bool {
        false
    }

    /// A filter that matches the keys of all leases in a bucket.
    fn leases(&self) -> &'static str;

    /// The election that a lease of this bucket, under this key, with this content, is of.
    fn election(&self, bucket: &str, key: &str, value: &[u8]) -> Option<ElectionName>;

    /// The bytes to write.
    fn print(&self, on: &ElectionName, record: &Record) -> Result<Vec<u8>, StoreError>;

    /// What these bytes say. An error only where they are another election's; what makes no sense is a record that makes none.
    fn read(&self, on: &ElectionName, value: &[u8]) -> Result<Record, StoreError>;

    /// What is said in the mark of the deletion, where the profile deletes a record on release; one line. `None`: a record that nobody
    /// holds is a record.
    fn print_released(&self, on: &ElectionName, record: &Record) -> Option<String> {
        None
    }

    /// What such a mark says. `None`: it counts for nothing, as the mark of any other deletion.
    fn read_released(&self, on: &ElectionName, said: &str) -> Result<Option<Record>, StoreError> {
        Ok(None)
    }
}
