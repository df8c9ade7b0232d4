//! What several tests of this crate need.

pub(crate) mod mounts;

use std::path::Path;
use std::time::Duration;

use bellwether_backend::Write;
use bellwether_core::{Incarnation, StoreError};
use bellwether_file::{File, Numbered, Value, Version, open};
use bellwether_support::{Actor, clock};

/// A candidate in the election `reports` of this directory.
pub(crate) fn actor(dir: impl AsRef<Path>, id: &str, ttl: Duration) -> Actor<File> {
    Actor::new(open(dir, clock()).unwrap(), id, ttl)
}

pub(crate) fn done(write: Result<Write<Version>, StoreError>) -> Version {
    match write.unwrap() {
        Write::Done(version) => version,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn text(records: &Numbered) -> Option<String> {
    records.load().unwrap().map(|found| match found.value {
        Value::Bytes(bytes) => String::from_utf8(bytes).unwrap(),
        other => panic!("{other:?}"),
    })
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

pub(crate) fn incarnation(bits: u128) -> Incarnation {
    Incarnation::from_bits(bits)
}
