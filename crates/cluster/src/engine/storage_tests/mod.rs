//! What the storage promises: openraft's own suite, and what damage, a full disk and a crash do to it.

mod damage;
mod restart;
mod suite;

use std::path::Path;

use openraft::entry::RaftEntry;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
use openraft::vote::RaftLeaderId;

use super::failure::Failure;
use super::types::{Command, Entry, LogId};
use super::{EngineOptions, Storage};
use crate::error::ClusterError;
use crate::names::{ClusterId, NodeId};
use crate::state_machine::{At, CorruptSnapshot, StateMachine};

pub(super) const NODE: NodeId = NodeId::from_random(7);
pub(super) const CLUSTER: ClusterId = ClusterId::from_random(1);

/// Remembers every command.
#[derive(Default)]
pub(super) struct Remembers(Vec<Vec<u8>>);

impl StateMachine for Remembers {
    fn apply(&mut self, _: At, command: &[u8]) -> Vec<u8> {
        self.0.push(command.to_vec());
        command.to_vec()
    }

    fn snapshot(&self) -> Vec<u8> {
        postcard::to_stdvec(&self.0).unwrap()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), CorruptSnapshot> {
        self.0 = postcard::from_bytes(snapshot).map_err(|error| CorruptSnapshot(error.to_string()))?;
        Ok(())
    }
}

fn open(directory: &Path) -> Result<Storage, ClusterError> {
    open_as(directory, NODE, CLUSTER)
}

fn open_as(directory: &Path, node: NodeId, cluster: ClusterId) -> Result<Storage, ClusterError> {
    let options = EngineOptions::new(directory, node, cluster);
    Storage::open(&options, Box::<Remembers>::default(), &Failure::none_yet())
}

pub(super) fn id(term: u64, index: u64) -> LogId {
    LogId::new(RaftLeaderId::new(term, NODE.number()), index)
}

pub(super) fn entry(term: u64, index: u64) -> Entry {
    let command = Command::from(format!("command {index} of term {term}").into_bytes());
    Entry::new_normal(id(term, index), command)
}

/// Appends entries of a term, and waits until they are on disk.
async fn append(
    storage: &mut Storage,
    term: u64,
    indices: std::ops::RangeInclusive<u64>,
) -> std::io::Result<()> {
    let appended = storage.log.blocking_append(indices.map(|index| entry(term, index))).await;
    appended.map_err(|error| std::io::Error::other(error.to_string()))
}

/// The log, as text.
async fn log(storage: &mut Storage) -> Vec<String> {
    use openraft::RaftLogReader;
    let mut reader = storage.log.get_log_reader().await;
    let entries = reader.try_get_log_entries(..).await.unwrap();
    entries.into_iter().map(|entry| format!("{:?}", entry)).collect()
}
