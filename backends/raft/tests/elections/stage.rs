//! Nodes in this process, on loopback, with the election service, and clients of them.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::Backend;
use bellwether_cluster::transport::Security;
use bellwether_cluster::{Cluster, Config, NodeName, NodeParts, Openraft, Peer, StaticResolver};
use bellwether_core::{Bid, Boot, Candidate, CandidateId, ElectionName, Grant, Incarnation, Outcome};
use bellwether_raft::{ElectionService, Raft, from_url};
use bellwether_support::clock;
use tempfile::TempDir;

/// For anything to happen on a machine that is busy with other tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Three nodes, or as many as wanted.
pub(crate) struct Stage {
    place: TempDir,
    peers: Vec<Peer>,
    nodes: Vec<Option<Cluster>>,
}

impl Stage {
    /// A cluster of three that is ready.
    pub(crate) async fn start() -> Stage {
        let held: Vec<TcpListener> =
            (0..3).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let peers = held.iter().enumerate().map(|(number, port)| {
            Peer::new(name(number), port.local_addr().expect("an address").to_string())
        });
        let peers: Vec<Peer> = peers.collect();
        drop(held);
        let mut stage =
            Stage { place: TempDir::new().expect("a directory"), peers, nodes: vec![None, None, None] };
        stage.start_missing().await;
        stage
    }

    /// Starts those that are down, from where they were.
    pub(crate) async fn start_missing(&mut self) {
        let down: Vec<usize> = (0..self.nodes.len()).filter(|number| self.nodes[*number].is_none()).collect();
        let starting = down.iter().map(|number| self.launch(*number));
        let started = futures_util::future::join_all(starting).await;
        for (number, node) in down.into_iter().zip(started) {
            self.nodes[number] = Some(node);
        }
    }

    fn launch(&self, number: usize) -> impl Future<Output = Cluster> + use<> {
        let mut config =
            Config::new(name(number), self.peers[number].address.clone(), self.directory(number), 3);
        config.bootstrap.join_retry = Duration::from_millis(200);
        config.bootstrap.join_timeout = Some(PATIENCE);
        let service = ElectionService::new(clock());
        let machine = service.clone();
        let parts = NodeParts {
            resolver: Arc::new(StaticResolver::new(self.peers.clone())),
            security: Security::LoopbackOnly,
            engines: Arc::new(Openraft),
            machine: Box::new(move || machine.machine()),
            ledger: None,
            service: Some(Arc::new(service)),
        };
        async move { Cluster::start(config, parts).await.expect("a node").0 }
    }

    fn directory(&self, number: usize) -> PathBuf {
        self.place.path().join(format!("n-{number}"))
    }

    pub(crate) fn node(&self, number: usize) -> &Cluster {
        self.nodes[number].as_ref().expect("it is up")
    }

    /// Stops a node as a crash would: nobody is handed anything.
    pub(crate) async fn kill(&mut self, number: usize) {
        self.nodes[number].take().expect("it is up").halt().await;
    }

    /// The node that leads the cluster, once one does.
    pub(crate) async fn leader(&self) -> usize {
        let leads = |number: &usize| self.nodes[*number].as_ref().is_some_and(Cluster::is_leader);
        let mut found = None;
        until("a node leads", || {
            found = (0..self.nodes.len()).find(leads);
            std::future::ready(found.is_some())
        })
        .await;
        found.expect("one leads")
    }

    pub(crate) fn url(&self) -> String {
        self.url_of(&[0, 1, 2])
    }

    /// Of these nodes only, in this order.
    pub(crate) fn url_of(&self, numbers: &[usize]) -> String {
        let addresses: Vec<&str> =
            numbers.iter().map(|number| self.peers[*number].address.as_str()).collect();
        format!("raft://{}", addresses.join(","))
    }

    pub(crate) fn client(&self) -> Arc<Raft> {
        client(&self.url())
    }
}

pub(crate) fn client(url: &str) -> Arc<Raft> {
    Arc::new(from_url(url, clock()).expect("a store"))
}

pub(crate) fn name(number: usize) -> NodeName {
    NodeName::new(format!("n-{number}")).expect("a name")
}

pub(crate) fn election(text: &str) -> ElectionName {
    ElectionName::new(text).expect("a name")
}

/// A candidate of this id; each has an incarnation of its own.
pub(crate) fn bid(id: &str, ttl: Duration) -> Bid {
    let incarnation = Incarnation::from_bits(bellwether_deadman::random_bits());
    let who = Candidate { id: CandidateId::new(id).expect("an id"), incarnation };
    Bid::new(who, ttl, Boot::default())
}

pub(crate) async fn claim(store: &Raft, on: &ElectionName, bid: &Bid) -> Outcome<Grant> {
    store.claim(on, &Bid { sent: clock().boot(), ..bid.clone() }).await
}

/// Claims until it is in.
pub(crate) async fn lead(store: &Raft, on: &ElectionName, bid: &Bid) -> Grant {
    let claiming = async {
        loop {
            match claim(store, on, bid).await {
                Outcome::Done(grant) => return grant,
                Outcome::Refused(error) => panic!("{error}"),
                Outcome::Denied(_) | Outcome::Unknown(_) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, claiming).await.expect("it leads in time")
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
