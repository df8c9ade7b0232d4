//! Nodes in this process, on loopback, with a state machine that is a list.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bellwether_cluster::transport::Security;
use bellwether_cluster::{
    At, Cluster, ClusterError, Config, CorruptSnapshot, NodeName, NodeParts, Openraft, Peer, StartResult,
    StateMachine, StaticResolver,
};
use tempfile::TempDir;

/// For anything to happen on a machine that is busy with other tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Remembers every command in order, and answers with how many there were before it.
#[derive(Default)]
pub(crate) struct Journal(Vec<Vec<u8>>);

impl StateMachine for Journal {
    fn apply(&mut self, _: At, command: &[u8]) -> Vec<u8> {
        let place = self.0.len() as u64;
        self.0.push(command.to_vec());
        place.to_be_bytes().to_vec()
    }

    fn snapshot(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).expect("a list")
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), CorruptSnapshot> {
        self.0 = serde_json::from_slice(snapshot).map_err(|error| CorruptSnapshot(error.to_string()))?;
        Ok(())
    }
}

/// Names, ports and directories of the nodes to be.
pub(crate) struct Stage {
    place: TempDir,
    peers: Vec<Peer>,
}

impl Stage {
    /// So many nodes, `n-0` and on, each with a port that is free now.
    pub(crate) fn new(count: usize) -> Stage {
        let held: Vec<TcpListener> =
            (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let peers = held.iter().enumerate().map(|(number, port)| {
            Peer::new(name(number), port.local_addr().expect("an address").to_string())
        });
        let peers = peers.collect();
        Stage { place: TempDir::new().expect("a directory"), peers }
    }

    pub(crate) fn directory(&self, number: usize) -> PathBuf {
        self.place.path().join(format!("n-{number}"))
    }

    pub(crate) fn config(&self, number: usize) -> Config {
        let address = self.peers[number].address.clone();
        let mut config = Config::new(name(number), address, self.directory(number), self.peers.len());
        config.promote_after = Duration::from_millis(200);
        config.bootstrap.join_retry = Duration::from_millis(200);
        config.bootstrap.join_timeout = Some(PATIENCE);
        config
    }

    pub(crate) fn parts(&self) -> NodeParts {
        NodeParts {
            resolver: Arc::new(StaticResolver::new(self.peers.clone())),
            security: Security::LoopbackOnly,
            engines: Arc::new(Openraft),
            machine: Box::new(|| Box::new(Journal::default())),
            ledger: None,
            service: None,
        }
    }

    pub(crate) async fn start(&self, number: usize) -> Result<(Cluster, StartResult), ClusterError> {
        Cluster::start(self.config(number), self.parts()).await
    }

    /// All of them, from nothing or from where they were.
    pub(crate) async fn start_all(&self) -> Vec<(Cluster, StartResult)> {
        let all = (0..self.peers.len()).map(|number| self.start(number));
        futures_util::future::try_join_all(all).await.expect("a cluster")
    }

    /// As if the disk were new.
    pub(crate) fn wipe(&self, number: usize) {
        remove(&self.directory(number));
    }
}

fn remove(directory: &Path) {
    std::fs::remove_dir_all(directory).expect("a directory");
}

pub(crate) fn name(number: usize) -> NodeName {
    NodeName::new(format!("n-{number}")).expect("a name")
}

/// Looks until it holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut look: impl FnMut() -> F) {
    let holds = async {
        while !look().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, holds).await.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"));
}

/// Until all have applied the same, and have the same state.
pub(crate) async fn agree(nodes: &[&Cluster]) {
    until("equal states", || async {
        let mut views = Vec::new();
        for node in nodes {
            views.push(node.view().await.expect("a view"));
        }
        views.windows(2).all(|pair| {
            (pair[0].hashed_index, pair[0].state_hash, pair[0].cluster)
                == (pair[1].hashed_index, pair[1].state_hash, pair[1].cluster)
        })
    })
    .await;
}
