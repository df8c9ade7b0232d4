//! What the nodes run: keys and values, as etcd has them.

use std::collections::BTreeMap;

use bellwether_cluster::{At, CorruptSnapshot, StateMachine};

/// As etcd's own benchmark has them.
pub(crate) const KEY_BYTES: usize = 8;
pub(crate) const VALUE_BYTES: usize = 256;
/// So many keys are written, one after the other.
pub(crate) const KEYS: u64 = 10_000;

/// A command is a key and its value.
pub(crate) fn put(key: u64, value_bytes: usize) -> Vec<u8> {
    let mut command = format!("{:0KEY_BYTES$}", key % KEYS).into_bytes();
    command.resize(KEY_BYTES + value_bytes, b'v');
    command
}

#[derive(Default)]
pub(crate) struct Map(BTreeMap<Vec<u8>, Vec<u8>>);

impl StateMachine for Map {
    fn apply(&mut self, _: At, command: &[u8]) -> Vec<u8> {
        if let Some((key, value)) = command.split_at_checked(KEY_BYTES) {
            self.0.insert(key.to_vec(), value.to_vec());
        }
        Vec::new()
    }

    fn snapshot(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (key, value) in &self.0 {
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(&(value.len() as u64).to_be_bytes());
            bytes.extend_from_slice(value);
        }
        bytes
    }

    fn restore(&mut self, mut snapshot: &[u8]) -> Result<(), CorruptSnapshot> {
        self.0.clear();
        let short = || CorruptSnapshot("it is too short".to_owned());
        while !snapshot.is_empty() {
            let (key, rest) = snapshot.split_at_checked(KEY_BYTES).ok_or_else(short)?;
            let (length, rest) = rest.split_first_chunk::<8>().ok_or_else(short)?;
            let length = usize::try_from(u64::from_be_bytes(*length)).map_err(|_| short())?;
            let (value, rest) = rest.split_at_checked(length).ok_or_else(short)?;
            self.0.insert(key.to_vec(), value.to_vec());
            snapshot = rest;
        }
        Ok(())
    }
}
