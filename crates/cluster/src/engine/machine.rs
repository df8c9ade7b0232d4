//! The user's state machine as openraft drives it.
//!
//! The state is in memory. What is on disk is the last snapshot and the log after it: at a start the state comes from the snapshot, and
//! openraft applies the rest. A snapshot from a leader is on disk before it replaces the state.
//!
//! Beside the user's state there is one number: how often the cluster was recovered. It comes from the log, and is the first
//! [`GENERATION_BYTES`] of every snapshot, so a node that joins with an empty disk has it too.

use std::fmt;
use std::io;
use std::sync::Arc;

use futures_util::{Stream, TryStreamExt};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder};
use tokio::task::spawn_blocking;

use super::codec::checksum;
use super::failure::Failure;
use super::snapshots::{Snapshots, included};
use super::types::{Answer, Command, LogId, Snapshot, SnapshotData, SnapshotMeta, StoredMembership, Types};
use crate::error::ClusterError;
use crate::state_machine::{At, CorruptSnapshot, StateMachine};

const GENERATION_BYTES: usize = 4;

/// The state machine, and how far it is.
pub(super) struct Machine {
    // openraft wants to share it between threads. It has one owner, and needs no lock: see `Unshared`.
    state: Unshared<Box<dyn StateMachine>>,
    generation: u32,
    applied: Option<LogId>,
    membership: StoredMembership,
    snapshots: Snapshots,
    failure: Failure,
}

impl Machine {
    /// Restores the state machine from the newest snapshot. Blocking.
    pub(super) fn open(
        mut state: Box<dyn StateMachine>,
        snapshots: Snapshots,
        failure: Failure,
    ) -> Result<Machine, ClusterError> {
        let (mut generation, mut applied, mut membership) = (0, None, StoredMembership::default());
        if let Some(snapshot) = snapshots.newest()? {
            generation = restore(state.as_mut(), &snapshot.snapshot).map_err(|error| {
                ClusterError::corrupt(format!(
                    "{error}; start the program that wrote it, or move the data directory away and let the node join again with an \
                     empty one"
                ))
            })?;
            (applied, membership) = (snapshot.meta.last_log_id, snapshot.meta.last_membership);
        }
        Ok(Machine { state: Unshared::new(state), generation, applied, membership, snapshots, failure })
    }

    /// The last entry in the state.
    pub(super) fn applied(&self) -> Option<LogId> {
        self.applied
    }

    /// A hash of the state and of the index of the last entry in it, with that index. Equal on every node.
    pub(super) fn hash(&mut self) -> (u64, u64) {
        let index = self.applied.map_or(0, |id| id.index);
        (checksum(index, &self.bytes()), index)
    }

    fn bytes(&mut self) -> Vec<u8> {
        [&self.generation.to_le_bytes(), self.state.get().snapshot().as_slice()].concat()
    }

    fn view(&mut self) -> Snapshot {
        let meta = SnapshotMeta { last_log_id: self.applied, last_membership: self.membership.clone() };
        Snapshot { meta, snapshot: Arc::new(self.bytes()) }
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotData = SnapshotData;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembership)> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<Types>>> + Unpin + OptionalSend,
    {
        while let Some((entry, responder)) = entries.try_next().await? {
            let answer = match entry.payload {
                EntryPayload::Normal(Command::Apply(command)) => {
                    let (index, term) = (entry.log_id.index, entry.log_id.leader_id.term);
                    let at = At { index, term, generation: self.generation };
                    self.state.get().apply(at, &command.0)
                }
                EntryPayload::Normal(Command::Recovered(generation)) => {
                    self.generation = generation.max(self.generation);
                    Vec::new()
                }
                EntryPayload::Membership(membership) => {
                    self.membership = StoredMembership::new(Some(entry.log_id), membership);
                    Vec::new()
                }
                EntryPayload::Blank => Vec::new(),
            };
            self.applied = Some(entry.log_id);
            if let Some(responder) = responder {
                responder.send(Answer(answer));
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder { snapshot: self.view(), snapshots: self.snapshots.clone() }
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, data: SnapshotData) -> io::Result<()> {
        let snapshot = Snapshot { meta: meta.clone(), snapshot: data };
        store(&self.snapshots, &snapshot).await?;
        let restored = restore(self.state.get().as_mut(), &snapshot.snapshot);
        self.generation = restored.map_err(|error| {
            let index = included(meta);
            self.failure.note(&format!(
                "the leader's snapshot at entry {index}: {error}; run the same program on every node"
            ))
        })?;
        (self.applied, self.membership) = (snapshot.meta.last_log_id, snapshot.meta.last_membership);
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<Snapshot>> {
        let snapshots = self.snapshots.clone();
        spawn_blocking(move || snapshots.newest_now()).await.map_err(io::Error::other)?
    }
}

/// Restores the state from a snapshot, and returns the generation in it.
fn restore(state: &mut dyn StateMachine, snapshot: &[u8]) -> Result<u32, CorruptSnapshot> {
    let too_short = || CorruptSnapshot("it is too short".to_owned());
    let (generation, rest) = snapshot.split_first_chunk::<GENERATION_BYTES>().ok_or_else(too_short)?;
    state.restore(rest)?;
    Ok(u32::from_le_bytes(*generation))
}

/// The state at one moment, on its way to disk.
pub(super) struct Builder {
    snapshot: Snapshot,
    snapshots: Snapshots,
}

impl RaftSnapshotBuilder<Types> for Builder {
    type SnapshotData = SnapshotData;

    async fn build_snapshot(&mut self) -> io::Result<Snapshot> {
        store(&self.snapshots, &self.snapshot).await?;
        Ok(self.snapshot.clone())
    }
}

async fn store(snapshots: &Snapshots, snapshot: &Snapshot) -> io::Result<()> {
    let (snapshots, snapshot) = (snapshots.clone(), snapshot.clone());
    spawn_blocking(move || snapshots.write(&snapshot)).await.map_err(io::Error::other)?
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("applied", &self.applied).finish_non_exhaustive()
    }
}

/// Makes a value that only one thread may use at a time shareable, by giving access to nobody who shares it: `&mut` is the only way in.
struct Unshared<T>(std::sync::Mutex<T>);

impl<T> Unshared<T> {
    fn new(value: T) -> Unshared<T> {
        Unshared(std::sync::Mutex::new(value))
    }

    fn get(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
