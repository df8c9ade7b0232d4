//! What lies in a record's place, as a record: JSON, or whatever somebody put there.

use bellwether_backend::json;

use crate::value::Value;

pub(crate) use bellwether_backend::json::{Read, print};

/// Whether Bellwether wrote these bytes as a record of an election.
pub(crate) fn is_ours(bytes: &[u8]) -> bool {
    let read = json::read(bytes);
    read.election.is_some() && read.record.epoch.is_some()
}

/// Never fails: what makes no sense is a record that makes none.
pub(crate) fn read(value: &Value) -> Read {
    match value {
        Value::Bytes(bytes) => json::read(bytes),
        Value::Huge | Value::NotAFile => Read::nonsense(),
    }
}
