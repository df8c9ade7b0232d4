//! Snapshots: files in `snap/` that are whole or not there.
//!
//! ```text
//! magic, format   who made this file, and how to read it
//! header          its length and bytes: the node, what the snapshot includes, the length of the data
//! data            what the state machine gave
//! checksum        of all of the above
//! ```
//!
//! A file is written under a temporary name, synced, renamed, and its directory is synced. Only then does the log before it go. The last two
//! are kept. Files with other names are somebody else's, and stay.
//!
//! The newest one must be readable: the log before it is gone, and an older one with a log that does not follow is not a state.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::codec::{checksum, decode};
use super::failure::Failure;
use super::files::{self, damaged, unusable};
use super::types::{Snapshot, SnapshotMeta};
use crate::error::ClusterError;
use crate::names::NodeId;

const DIRECTORY: &str = "snap";
const EXTENSION: &str = "snapshot";
const TEMPORARY: &str = "incoming.tmp";
const MAGIC: &[u8; 8] = b"BWRAFT\0\x01";
const CHECKSUM_BYTES: usize = 8;
/// The newest, and the one before it for people who look for what went wrong.
const KEPT: usize = 2;

/// The snapshots of one node. Clones are of the same ones.
#[derive(Clone, Debug)]
pub(super) struct Snapshots {
    directory: PathBuf,
    node: NodeId,
    failure: Failure,
    /// Held while a file is written: one that a leader sends and one of our own may come at the same time.
    writing: Arc<Mutex<()>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    node: NodeId,
    pub(super) meta: SnapshotMeta,
    data_bytes: u64,
}

impl Snapshots {
    pub(super) fn open(data: &Path, node: NodeId, failure: Failure) -> Result<Snapshots, ClusterError> {
        let directory = data.join(DIRECTORY);
        fs::create_dir_all(&directory)
            .and_then(|()| files::sync_parent(&directory))
            .map_err(|error| unusable(&directory, "make", &error))?;
        let temporary = directory.join(TEMPORARY);
        files::start_over(&temporary).map_err(|error| unusable(&temporary, "remove", &error))?;
        Ok(Snapshots { directory, node, failure, writing: Arc::default() })
    }

    /// The newest snapshot. Blocking.
    pub(super) fn newest(&self) -> Result<Option<Snapshot>, ClusterError> {
        let all = self.all().map_err(|error| unusable(&self.directory, "list", &error))?;
        all.last().map(|(_, path)| self.read(path)).transpose()
    }

    /// Writes a snapshot. It is on disk when this returns, and the oldest ones are gone. Blocking.
    pub(super) fn write(&self, snapshot: &Snapshot) -> io::Result<()> {
        self.failure.check()?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.try_write(snapshot).map_err(|error| {
            self.failure.note(&format!(
                "cannot write a snapshot to {}: {error}; mend the disk or make room on it, then start the node again",
                self.directory.display()
            ))
        })
    }

    /// [`Snapshots::newest`] while the engine runs: what cannot be read ends it.
    pub(super) fn newest_now(&self) -> io::Result<Option<Snapshot>> {
        self.failure.check()?;
        self.newest().map_err(|error| self.failure.note(&error.to_string()))
    }

    fn try_write(&self, snapshot: &Snapshot) -> io::Result<()> {
        let index = included(&snapshot.meta);
        let temporary = self.directory.join(TEMPORARY);
        let mut file = File::create(&temporary)?;
        let front = front(self.node, snapshot)?;
        // One checksum of two parts: that of the data seeds that of what stands before it.
        let sum = checksum(checksum(index, &snapshot.snapshot), &front);
        file.write_all(&front)?;
        file.write_all(&snapshot.snapshot)?;
        file.write_all(&sum.to_le_bytes())?;
        // By the descriptor that was written: one that is opened later may not hear of an earlier failure.
        file.sync_all()?;
        files::publish(&temporary, &self.directory.join(name(index)))?;
        self.tidy()
    }

    fn tidy(&self) -> io::Result<()> {
        let all = self.all()?;
        let superfluous = all.len().saturating_sub(KEPT);
        all[..superfluous].iter().try_for_each(|(_, path)| fs::remove_file(path))
    }

    /// Our files, oldest first.
    fn all(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let mut all = Vec::new();
        for file in fs::read_dir(&self.directory)? {
            let path = file?.path();
            if let Some(index) = path.file_name().and_then(|name| name.to_str()).and_then(index_of) {
                all.push((index, path));
            }
        }
        all.sort();
        Ok(all)
    }

    fn read(&self, path: &Path) -> Result<Snapshot, ClusterError> {
        let bytes = fs::read(path).map_err(|error| unusable(path, "read", &error))?;
        let (header, data) = parse(&bytes).map_err(|what| damaged(path, &what))?;
        let index = included(&header.meta);
        let (front, rest) = bytes.split_at(bytes.len() - CHECKSUM_BYTES - data.len());
        let sum = checksum(checksum(index, data), front);
        if rest[data.len()..] != sum.to_le_bytes() || path.file_name() != Some(name(index).as_ref()) {
            return Err(damaged(path, "its checksum is wrong"));
        }
        if header.node != self.node {
            return Err(ClusterError::invalid(format!(
                "{} belongs to node {}, and this is node {}: give every node a directory of its own",
                path.display(),
                header.node,
                self.node
            )));
        }
        Ok(Snapshot { meta: header.meta, snapshot: Arc::new(data.to_vec()) })
    }
}

/// What stands before the data.
pub(super) fn front(node: NodeId, snapshot: &Snapshot) -> io::Result<Vec<u8>> {
    let data_bytes = snapshot.snapshot.len() as u64;
    let header = Header { node, meta: snapshot.meta.clone(), data_bytes };
    let header = postcard::to_stdvec(&header).map_err(io::Error::other)?;
    let length = u32::try_from(header.len()).map_err(io::Error::other)?;
    Ok([MAGIC.as_slice(), &length.to_le_bytes(), &header].concat())
}

pub(super) fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), String> {
    let short = || "it is too short".to_owned();
    let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as a snapshot of format 1 does")?;
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (header, rest) = rest.split_at_checked(length).ok_or_else(short)?;
    let header: Header = decode(header).map_err(|error| format!("its header: {}", error.0))?;
    let (data, _) = rest.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(short)?;
    if data.len() as u64 != header.data_bytes {
        return Err(format!("it has {} bytes of data instead of {}", data.len(), header.data_bytes));
    }
    Ok((header, data))
}

/// The index of the last entry in a snapshot; 0 also for a snapshot of nothing.
pub(super) fn included(meta: &SnapshotMeta) -> u64 {
    meta.last_log_id.as_ref().map_or(0, |id| id.index)
}

fn name(index: u64) -> String {
    format!("{index:020}.{EXTENSION}")
}

fn index_of(file: &str) -> Option<u64> {
    let digits = file.strip_suffix(EXTENSION)?.strip_suffix('.')?;
    let is_ours = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_ours.then(|| digits.parse().ok()).flatten()
}
