//! What lies in a record's place, as a record: JSON, or whatever somebody put there.

use bellwether_backend::json;

use crate::value::Value;

pub(crate) use bellwether_backend::json::{Read, print};

/// Never fails: what makes no sense is a record that makes none.
pub(crate) fn read(value: &Value) -> Read {
    match value {
        Value::Bytes(bytes) => json::read(bytes),
        Value::Huge | Value::NotAFile => Read::nonsense(),
    }
}
