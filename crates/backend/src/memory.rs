//! A store in memory: for trying out, for tests, and as the model of what a register is.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, Weak};

use bellwether_core::{Clock, ElectionName, Epoch, ErrorKind, StoreError};
use futures_util::stream;

use crate::{
    Capabilities, Change, Changes, Discarded, Finding, Found, FoundNote, Lease, Mailbox, Note, Probing,
    Record, Register, Write, lock,
};

/// What all connections share. Cloning shares it; it lasts as long as its longest-lived clone or connection.
#[derive(Clone, Default)]
pub struct MemoryStore {
    cells: Arc<Mutex<Cells>>,
}

#[derive(Default)]
struct Cells {
    /// Counts every write, so that versions rise even over a deletion.
    sequence: u64,
    /// The highest epoch ever written for each election: it outlives the record, and a floor that was far ahead.
    epochs: BTreeMap<ElectionName, Epoch>,
    records: BTreeMap<ElectionName, (Record, u64)>,
    notes: BTreeMap<(ElectionName, Note), (Vec<u8>, u64)>,
    connections: Vec<Weak<MemoryConnection>>,
}

impl Cells {
    fn next_version(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn put(&mut self, on: &ElectionName, record: Record) -> u64 {
        if let Some(epoch) = record.epoch {
            let highest = self.epochs.entry(on.clone()).or_default();
            *highest = epoch.max(*highest);
        }
        let version = self.next_version();
        self.records.insert(on.clone(), (record, version));
        version
    }
}

#[derive(Default)]
struct MemoryConnection {
    followed: Mutex<HashSet<ElectionName>>,
    mail: Mailbox,
}

/// One connection to a [`MemoryStore`].
pub struct Memory {
    store: MemoryStore,
    connection: Arc<MemoryConnection>,
}

impl MemoryStore {
    /// Another connection, as another process would have.
    pub fn connect(&self, clock: Arc<dyn Clock>) -> Lease<Memory> {
        Lease::new(self.register(), clock)
    }

    /// The register alone of another connection, to build something else on.
    pub fn register(&self) -> Memory {
        let connection = Arc::new(MemoryConnection::default());
        lock(&self.cells).connections.push(Arc::downgrade(&connection));
        Memory { store: self.clone(), connection }
    }

    /// Puts a record in behind everybody's back, whatever was there: a foreign one, or a broken one.
    pub fn put(&self, on: &ElectionName, record: Record) {
        lock(&self.cells).put(on, record);
        self.announce(on);
    }

    /// Removes the record of an election behind everybody's back.
    pub fn delete(&self, on: &ElectionName) {
        lock(&self.cells).records.remove(on);
        self.announce(on);
    }

    /// How many writes this store has taken, ever: looking must not change it.
    pub fn writes(&self) -> u64 {
        lock(&self.cells).sequence
    }

    fn announce(&self, on: &ElectionName) {
        let connections: Vec<_> = {
            let mut cells = lock(&self.cells);
            cells.connections.retain(|connection| connection.strong_count() > 0);
            cells.connections.iter().filter_map(Weak::upgrade).collect()
        };
        for connection in connections {
            if lock(&connection.followed).contains(on) {
                connection.mail.put(on.clone());
            }
        }
    }
}

impl Register for Memory {
    type Version = u64;

    fn name(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::REGISTER.with(|can| can.create_once = true)
    }

    async fn load(&self, on: &ElectionName) -> Result<Found<u64>, StoreError> {
        Ok(lock(&self.store.cells).records.get(on).cloned())
    }

    async fn write(&self, on: &ElectionName, at: Option<&u64>, new: &Record) -> Write<u64> {
        let mut cells = lock(&self.store.cells);
        if cells.records.get(on).map(|(_, version)| version) != at {
            return Write::Conflict;
        }
        let version = cells.put(on, new.clone());
        drop(cells);
        self.store.announce(on);
        Write::Done(version)
    }

    fn follow(&self, on: &ElectionName) {
        lock(&self.connection.followed).insert(on.clone());
    }

    fn unfollow(&self, on: &ElectionName) {
        lock(&self.connection.followed).remove(on);
    }

    fn changes(&self) -> Changes<u64> {
        let connection = Arc::clone(&self.connection);
        Box::pin(stream::unfold(connection, |connection| async move {
            let on = connection.mail.take().await;
            Some((Change::Look(on), connection))
        }))
    }

    /// There is nothing here but memory.
    fn change_runtime(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn epoch(
        &self,
        on: &ElectionName,
        _: Option<(&Record, &u64)>,
        least: Epoch,
    ) -> Result<Epoch, StoreError> {
        let highest = lock(&self.store.cells).epochs.get(on).copied().unwrap_or_default();
        let next = highest.next().ok_or_else(|| {
            StoreError::new(ErrorKind::Misconfigured, "memory", "the epochs of this election are used up")
        })?;
        Ok(least.max(next))
    }

    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        Ok(lock(&self.store.cells).records.keys().cloned().collect())
    }

    async fn read_note(&self, on: &ElectionName, note: &Note) -> Result<FoundNote, StoreError> {
        Ok(lock(&self.store.cells).notes.get(&(on.clone(), note.clone())).cloned())
    }

    async fn write_note(&self, on: &ElectionName, note: &Note, at: Option<u64>, bytes: &[u8]) -> Write<u64> {
        let key = (on.clone(), note.clone());
        let mut cells = lock(&self.store.cells);
        if cells.notes.get(&key).map(|(_, version)| *version) != at {
            return Write::Conflict;
        }
        let version = cells.next_version();
        cells.notes.insert(key, (bytes.to_vec(), version));
        Write::Done(version)
    }

    async fn checkup(&self, _: Probing<'_>, _: &dyn Clock) -> Vec<Finding> {
        let sentence = "kept in the memory of one process and gone with it: for elections between processes choose a store \
                        that they share, as file:DIR";
        vec![Finding::warning("durability", sentence)]
    }

    async fn danger_discard(&self, on: &ElectionName) -> Result<Discarded, StoreError> {
        let mut cells = lock(&self.store.cells);
        if cells.records.get(on).is_some_and(|(record, _)| record.is_held()) {
            return Ok(Discarded::Remains(format!("{on}, which is held")));
        }
        cells.records.remove(on);
        cells.epochs.remove(on);
        cells.notes.retain(|(of, note), _| of != on || *note == Note::Once);
        Ok(Discarded::Gone)
    }
}
