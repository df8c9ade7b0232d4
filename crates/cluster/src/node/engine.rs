//! How a node gets its Raft engine.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::adapter::{PeerLink, RaftAdapter};
use crate::config::Profile;
use crate::error::ClusterError;
use crate::names::{ClusterId, NodeId};
use crate::state_machine::StateMachine;

/// Opens engines of one kind.
pub trait Engines: Send + Sync + 'static {
    /// Opens the storage in the directory, or makes it, and starts the engine. Storage of another node or another cluster is refused.
    fn open(
        &self,
        opening: Opening,
        machine: Box<dyn StateMachine>,
        link: Arc<dyn PeerLink>,
    ) -> BoxFuture<'_, Result<Arc<dyn RaftAdapter>, ClusterError>>;
}

/// What an engine is opened with.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The data directory.
    pub directory: PathBuf,
    /// The node.
    pub node: NodeId,
    /// Its cluster.
    pub cluster: ClusterId,
    /// The timing.
    pub profile: Profile,
}
