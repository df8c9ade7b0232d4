//! `raft.redb`: the node's vote and log on disk.
//!
//! ```text
//! head   one row: whose log it is, the vote, what is committed, what was purged, the last index
//! log    the entries after the purged ones, by index
//! ```
//!
//! The head is one row with one checksum. So no part of it can get lost alone: a vote that vanished would let the node vote twice.
//!
//! A new file appears under its name only when it has a head. So a file without one is never new, but damaged, and is refused.
//!
//! Blocking. [`super::writer`] has the thread on which it is used.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Database, DatabaseError, Durability, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};

use super::codec::{seal, unseal};
use super::files::{self, start_over};
use super::types::{Entry, LogId, Vote};
use crate::error::ClusterError;
use crate::names::{ClusterId, NodeId};

/// The name in the data directory.
pub(super) const FILE: &str = "raft.redb";
const TEMPORARY: &str = "raft.redb.new";
const HEAD: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("head");
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
/// The only key of the head, and its place for the checksum: no index of an entry.
const HEAD_KEY: u64 = u64::MAX;
/// The whole log is in memory too, so the cache of the file serves writes alone.
const CACHE_BYTES: usize = 8 << 20;

/// Whose log a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    pub(super) node: NodeId,
    pub(super) cluster: ClusterId,
    /// How often the cluster was recovered by hand.
    pub(super) generation: u32,
}

/// Everything but the entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) owner: Owner,
    pub(super) vote: Option<Vote>,
    pub(super) committed: Option<LogId>,
    pub(super) purged: Option<LogId>,
    /// The index of the last entry, if there are entries. Without it, a log that lost its end would look complete.
    pub(super) last: Option<u64>,
}

/// What a commit does to the entries. Edits are applied in order.
#[derive(Debug)]
pub(super) enum Edit {
    /// Stores a sealed entry.
    Put(u64, Vec<u8>),
    /// Removes the entries from this index on.
    Cut(u64),
    /// Removes the entries up to this index, inclusive.
    Purge(u64),
}

impl Edit {
    /// What it adds to a commit.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Edit::Put(_, sealed) => sealed.len(),
            Edit::Cut(_) | Edit::Purge(_) => 0,
        }
    }
}

/// The open file. Nobody else has it open.
pub(super) struct LogFile {
    database: Database,
    path: PathBuf,
}

impl LogFile {
    /// Opens the log of that node, or makes an empty one, and reads and verifies all of it.
    pub(super) fn open(directory: &Path, owner: Owner) -> Result<(LogFile, Head, Vec<Entry>), ClusterError> {
        let path = directory.join(FILE);
        if !fs::exists(&path).map_err(|error| files::unusable(&path, "look for", &error))? {
            create(directory, owner)?;
        }
        let (file, head, entries) = LogFile::read(path)?;
        if head.owner.node != owner.node {
            return Err(ClusterError::invalid(format!(
                "{} belongs to node {}, and this is node {}: give every node a directory of its own",
                file.path.display(),
                head.owner.node,
                owner.node
            )));
        }
        if head.owner.cluster != owner.cluster {
            return Err(ClusterError::invalid(format!(
                "{} belongs to cluster {}, and this node to cluster {}: restore the directory's own IDENTITY.json, or move the directory \
                 away and let the node join again with an empty one",
                file.path.display(),
                head.owner.cluster,
                owner.cluster
            )));
        }
        Ok((file, head, entries))
    }

    /// Opens an existing log, whosever it is.
    pub(super) fn read(path: PathBuf) -> Result<(LogFile, Head, Vec<Entry>), ClusterError> {
        // A damaged file may also trip an assertion of the database.
        let read = catch_unwind(AssertUnwindSafe(|| {
            let database = Database::builder().set_cache_size(CACHE_BYTES).open(&path);
            let mut database = database.map_err(|error| not_opened(&path, error))?;
            // Opening trusts a file that was closed properly. This verifies all its pages, and finds out anew which of them are free.
            database.check_integrity().map_err(|error| not_opened(&path, error))?;
            let (head, entries) = contents(&database).map_err(|what: String| damaged(&path, &what))?;
            Ok((database, head, entries))
        }));
        let (database, head, entries) =
            read.unwrap_or_else(|_| Err(damaged(&path, "its pages make no sense")))?;
        Ok((LogFile { database, path }, head, entries))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Commits the edits and the head. They are on disk when this returns.
    pub(super) fn commit(&self, edits: &[Edit], head: &Head) -> Result<(), redb::Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        // Without it, the database takes a damaged last commit for one that never ended, and returns to the one before it: a vote would
        // be forgotten. It costs a second fsync.
        transaction.set_two_phase_commit(true);
        {
            let mut log = transaction.open_table(LOG)?;
            for edit in edits {
                match edit {
                    Edit::Put(index, sealed) => drop(log.insert(index, sealed.as_slice())?),
                    // One by one: to remove a range at once, the database writes each page that it touches anew for every entry.
                    Edit::Cut(from) => {
                        while log.last()?.is_some_and(|(index, _)| index.value() >= *from) {
                            log.pop_last()?;
                        }
                    }
                    Edit::Purge(upto) => {
                        while log.first()?.is_some_and(|(index, _)| index.value() <= *upto) {
                            log.pop_first()?;
                        }
                    }
                }
            }
            let sealed = seal(HEAD_KEY, head).map_err(|error| redb::Error::Corrupted(error.0))?;
            transaction.open_table(HEAD)?.insert(HEAD_KEY, sealed.as_slice())?;
        }
        transaction.commit()?;
        Ok(())
    }
}

fn create(directory: &Path, owner: Owner) -> Result<(), ClusterError> {
    let temporary = directory.join(TEMPORARY);
    let failed = |error: &dyn std::fmt::Display| {
        ClusterError::storage(format!("cannot make {}: {error}", directory.join(FILE).display()))
    };
    start_over(&temporary).map_err(|error| failed(&error))?;
    let database = Database::builder().set_cache_size(CACHE_BYTES).create(&temporary);
    let database = database.map_err(|error| failed(&error))?;
    let file = LogFile { database, path: temporary.clone() };
    let head = Head { owner, vote: None, committed: None, purged: None, last: None };
    file.commit(&[], &head).map_err(|error| failed(&error))?;
    drop(file);
    files::publish(&temporary, &directory.join(FILE)).map_err(|error| failed(&error))
}

/// All of it, verified: every checksum, no hole, and the end where the head says.
fn contents(database: &Database) -> Result<(Head, Vec<Entry>), String> {
    let wrong = |error: redb::Error| error.to_string();
    let transaction = database.begin_read().map_err(|error| wrong(error.into()))?;
    let heads = transaction.open_table(HEAD).map_err(|error| wrong(error.into()))?;
    let head = heads.get(HEAD_KEY).map_err(|error| wrong(error.into()))?.ok_or("it has no head")?;
    let head: Head = unseal(HEAD_KEY, head.value()).map_err(|error| format!("its head: {}", error.0))?;
    let log = transaction.open_table(LOG).map_err(|error| wrong(error.into()))?;
    let mut entries: Vec<Entry> = Vec::new();
    let first = head.purged.as_ref().map_or(0, |id| id.index + 1);
    for (next, row) in (first..).zip(log.iter().map_err(|error| wrong(error.into()))?) {
        let (index, sealed) = row.map_err(|error| wrong(error.into()))?;
        let entry: Entry =
            unseal(index.value(), sealed.value()).map_err(|error| format!("entry {next}: {}", error.0))?;
        if index.value() != next || entry.log_id.index != next {
            return Err(format!("entry {next} is missing"));
        }
        entries.push(entry);
    }
    let last = entries.last().map(|entry| entry.log_id.index);
    if last != head.last {
        return Err(format!("it ends with entry {last:?} instead of {:?}", head.last));
    }
    Ok((head, entries))
}

/// The edit that stores an entry.
pub(super) fn put(entry: &Entry) -> std::io::Result<Edit> {
    let index = entry.log_id.index;
    let sealed = seal(index, entry).map_err(|error| std::io::Error::other(error.0))?;
    Ok(Edit::Put(index, sealed))
}

fn not_opened(path: &Path, error: DatabaseError) -> ClusterError {
    match error {
        DatabaseError::DatabaseAlreadyOpen => ClusterError::invalid(format!(
            "another process uses {}: end it, or give this node a directory of its own",
            path.display()
        )),
        DatabaseError::Storage(redb::StorageError::Io(error))
            if error.kind() != std::io::ErrorKind::InvalidData
                && error.kind() != std::io::ErrorKind::UnexpectedEof =>
        {
            files::unusable(path, "read", &error)
        }
        error => damaged(path, &error.to_string()),
    }
}

fn damaged(path: &Path, what: &str) -> ClusterError {
    files::damaged(path, what)
}
