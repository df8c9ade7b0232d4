//! What a register of numbered files holds, and the bounds of a record.
//!
//! Owns the words between [`crate::Numbered`] and its callers, and how long a record may be. Its bytes are JSON, or
//! whatever somebody put there.

use bellwether_backend::json;
use bellwether_core::StoreError;

use crate::directory::FileIdentity;

/// Longest record, in bytes: a hundred leaderships of history fit, and a reader never swallows a log file
/// that was put in a record's place.
pub const RECORD_MAX_BYTES: usize = 64 * 1024;
/// Last number: far beyond a write a microsecond for a century, and the next one still fits everywhere.
pub const NUMBER_MAX: u64 = (1 << 53) - 1;

/// Whether bytes are a value that Bellwether wrote: only a file that holds such bytes is ever removed.
pub type Ours = fn(&[u8]) -> bool;

/// Which value: ordered by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    pub(crate) number: u64,
    pub(crate) identity: FileIdentity,
}

impl Version {
    /// The record's number, for humans and for tests.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// The newest value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundValue {
    /// What a write that replaces it must name.
    pub version: Version,
    /// What it says.
    pub value: Value,
    /// Whether its place in the sequence shows that its write succeeded. If not, records were deleted by hand, and an
    /// earlier holder may still believe in one of them: take over by waiting only.
    pub settled: bool,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Its bytes, complete as somebody wrote them.
    Bytes(Vec<u8>),
    /// More than a value of this register may have, [`RECORD_MAX_BYTES`] for an election's; not read.
    Huge,
    /// A directory, a symbolic link, a pipe: not read, not followed.
    NotAFile,
}

/// How a write to a register of numbered files ended.
#[derive(Clone, Debug)]
#[must_use]
pub enum Written {
    /// On disk, and the newest value when it was linked.
    Done(Version),
    /// Certainly not written: the newest value was another one.
    Conflict,
    /// Taken back. It is not there any more, and never counts again; but while this process slept, others have gone on so far that
    /// nobody can tell whether it was the newest value for a moment before them.
    TakenBack,
    /// Perhaps written, perhaps not.
    Unknown(StoreError),
}

/// Whether Bellwether wrote these bytes as a record of an election.
pub(crate) fn is_record(bytes: &[u8]) -> bool {
    let read = json::read(bytes);
    read.election.is_some() && read.record.epoch.is_some()
}

/// The record that a value holds. Never fails: what makes no sense is read as a record that makes none.
pub(crate) fn read_record(value: &Value) -> json::Read {
    match value {
        Value::Bytes(bytes) => json::read(bytes),
        Value::Huge | Value::NotAFile => json::Read::nonsense(),
    }
}
