//! The Raft engine: openraft, with storage of its own.
//!
//! ```text
//!                 proposals                    messages of peers
//!                     │                               │
//!   adapter ──────────▼───────────────  receive ──────▼──────
//!                          openraft
//!   log_store ────────  machine ──────────────  network ─────
//!       │                   │                       │
//!     writer            snapshots                PeerLink
//!       │                   │
//!   raft.redb             snap/
//! ```
//!
//! None of openraft's types leaves this module.
//!
//! Invariant: nobody hears of a vote or an entry before it is on disk. Invariant: after a failed write nothing is written any more.

mod adapter;
mod changes;
mod codec;
mod failure;
mod files;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod log_file;
mod log_store;
mod machine;
mod message;
mod network;
mod receive;
mod recover;
mod snapshots;
mod status;
mod timing;
mod types;
mod writer;

#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod storage_tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, watch};
use tokio::task::{AbortHandle, spawn, spawn_blocking};

use failure::Failure;
use log_file::{LogFile, Owner};
use log_store::LogStore;
use machine::Machine;
use network::{Addresses, Network};
use receive::Receiver;
pub(crate) use recover::{Found, look};
pub use recover::{Recovery, recover};
use snapshots::Snapshots;
use types::{LogId, Raft};
use writer::Writer;

use crate::adapter::{PeerLink, RaftAdapter, RaftStatus};
use crate::config::Profile;
use crate::error::ClusterError;
use crate::names::{ClusterId, NodeId};
use crate::node::{Engines, Opening};
use crate::state_machine::StateMachine;

/// A snapshot after this many entries, unless told otherwise. A start then applies no more than that, which takes milliseconds.
const SNAPSHOT_EVERY: u64 = 10_000;
/// Entries before a snapshot that stay, unless told otherwise: who was away for a moment needs no snapshot.
const KEEP: u64 = 2_000;

/// What an engine is opened with.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The data directory.
    pub directory: PathBuf,
    /// The node that it belongs to.
    pub node: NodeId,
    /// The cluster of that node.
    pub cluster: ClusterId,
    /// How fast it reacts.
    pub profile: Profile,
    /// A snapshot is made after this many entries.
    pub snapshot_every: u64,
    /// This many entries before a snapshot stay in the log, for members that are a little behind.
    pub keep: u64,
}

impl EngineOptions {
    /// The defaults for that node.
    pub fn new(directory: impl Into<PathBuf>, node: NodeId, cluster: ClusterId) -> EngineOptions {
        EngineOptions {
            directory: directory.into(),
            node,
            cluster,
            profile: Profile::Default,
            snapshot_every: SNAPSHOT_EVERY,
            keep: KEEP,
        }
    }
}

/// openraft with its storage, for one node.
///
/// Dropped without [`shutdown`](crate::RaftAdapter::shutdown), it ends as if the process had been killed: nothing that was acknowledged is
/// lost.
pub struct OpenraftEngine {
    raft: Raft,
    receiver: Receiver,
    log: LogStore,
    failure: Failure,
    status: watch::Receiver<RaftStatus>,
    tasks: [AbortHandle; 2],
    /// Held while this node changes the members.
    changing: Arc<Mutex<()>>,
    node: NodeId,
    election_max: Duration,
    generation: u32,
}

impl OpenraftEngine {
    /// Opens the storage of a node, makes it if there is none, and starts the engine. It does nothing by itself until it has members:
    /// see [`bootstrap`](crate::RaftAdapter::bootstrap).
    ///
    /// # Errors
    /// When another process uses the directory, when it belongs to another node or cluster, when something in it is damaged, and when it
    /// cannot be read or written.
    pub async fn open(
        options: EngineOptions,
        machine: Box<dyn StateMachine>,
        link: Arc<dyn PeerLink>,
    ) -> Result<OpenraftEngine, ClusterError> {
        let config = timing::config(&options)?;
        let failure = Failure::none_yet();
        let (noted, read) = (failure.clone(), options.clone());
        let storage = spawn_blocking(move || Storage::open(&read, machine, &noted)).await;
        let storage =
            storage.map_err(|error| ClusterError::storage(format!("cannot read the log: {error}")))??;
        let Storage { log, machine, generation } = storage;
        let (node, addresses) = (options.node.number(), Addresses::default());
        let started =
            Raft::new(node, config, Network::new(link, addresses.clone()), log.clone(), machine).await;
        let raft = match started {
            Ok(raft) => raft,
            Err(error) => {
                let _ = log.close().await;
                return Err(files::damaged(&options.directory, &error.to_string()));
            }
        };
        let (news, status) = watch::channel(RaftStatus::default());
        let changing = Arc::new(Mutex::new(()));
        let tasks = [
            spawn(status::follow(raft.clone(), failure.watch(), news, addresses)).abort_handle(),
            spawn(changes::finish_interrupted(raft.clone(), changing.clone())).abort_handle(),
        ];
        Ok(OpenraftEngine {
            receiver: Receiver::new(raft.clone()),
            raft,
            log,
            failure,
            status,
            tasks,
            changing,
            node: options.node,
            election_max: options.profile.election_max(),
            generation,
        })
    }

    /// How often the cluster was recovered by hand ([`recover`]), as the storage of this node has it.
    pub fn generation(&self) -> u32 {
        self.generation
    }
}

/// Opens engines of this kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Openraft;

impl Engines for Openraft {
    fn open(
        &self,
        opening: Opening,
        machine: Box<dyn StateMachine>,
        link: Arc<dyn PeerLink>,
    ) -> BoxFuture<'_, Result<Arc<dyn RaftAdapter>, ClusterError>> {
        Box::pin(async move {
            let Opening { directory, node, cluster, profile } = opening;
            let options = EngineOptions { profile, ..EngineOptions::new(directory, node, cluster) };
            Ok(Arc::new(OpenraftEngine::open(options, machine, link).await?) as _)
        })
    }
}

impl Drop for OpenraftEngine {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.log.abandon();
    }
}

/// The parts of the storage, opened together.
struct Storage {
    log: LogStore,
    machine: Machine,
    generation: u32,
}

impl Storage {
    fn open(
        options: &EngineOptions,
        machine: Box<dyn StateMachine>,
        failure: &Failure,
    ) -> Result<Storage, ClusterError> {
        let owner = Owner { node: options.node, cluster: options.cluster, generation: 0 };
        let (file, head, entries) = LogFile::open(&options.directory, owner)?;
        let snapshots = Snapshots::open(&options.directory, options.node, failure.clone())?;
        let machine = Machine::open(machine, snapshots, failure.clone())?;
        if head.purged > machine.applied() {
            let index = |id: Option<LogId>| id.map_or(0, |id| id.index);
            let (purged, applied) = (index(head.purged), index(machine.applied()));
            let what = format!(
                "the log begins after entry {purged}, and the newest snapshot ends with entry {applied}"
            );
            return Err(files::damaged(&options.directory, &what));
        }
        let writer = Writer::start(file, head.clone(), failure.clone())?;
        Ok(Storage { log: LogStore::new(&head, entries, writer), machine, generation: head.owner.generation })
    }
}
