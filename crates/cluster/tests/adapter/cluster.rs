//! Nodes of a cluster in one process: started, killed, restarted.

use std::sync::Arc;
use std::time::Duration;

use bellwether_cluster::{
    Applied, ClusterError, ClusterId, Member, NodeId, NodeName, PeerLink, RaftAdapter, RaftFailure,
    RaftStatus, Role, StateMachine,
};
use futures_util::future::{BoxFuture, select_all};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::machine::Commands;
use crate::network::Network;

pub(crate) const CLUSTER: ClusterId = ClusterId::from_random(0xC);
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How to start a node on the engine that is tested.
pub(crate) trait Engine: Send + Sync + 'static {
    /// Opens a node's storage, and starts its engine. Snapshots come every 100 entries, and 20 entries before them stay.
    fn open(
        &self,
        directory: &std::path::Path,
        node: NodeId,
        machine: Box<dyn StateMachine>,
        link: Arc<dyn PeerLink>,
    ) -> BoxFuture<'static, Result<Arc<dyn RaftAdapter>, ClusterError>>;
}

pub(crate) struct Cluster {
    engine: Box<dyn Engine>,
    pub(crate) network: Network,
    pub(crate) nodes: Vec<Node>,
}

pub(crate) struct Node {
    pub(crate) member: Member,
    pub(crate) directory: TempDir,
    pub(crate) commands: Commands,
    running: Option<Arc<dyn RaftAdapter>>,
}

impl Node {
    pub(crate) fn id(&self) -> NodeId {
        self.member.node
    }

    pub(crate) fn adapter(&self) -> &dyn RaftAdapter {
        &**self.running.as_ref().expect("the node runs")
    }

    pub(crate) fn status(&self) -> RaftStatus {
        self.adapter().status().borrow().clone()
    }
}

impl Cluster {
    /// Nodes that know nothing.
    pub(crate) async fn of(engine: impl Engine, count: usize) -> Cluster {
        let mut cluster =
            Cluster { engine: Box::new(engine), network: Network::default(), nodes: Vec::new() };
        for _ in 0..count {
            cluster.add().await;
        }
        cluster
    }

    /// Three voters with a leader.
    pub(crate) async fn begun(engine: impl Engine) -> Cluster {
        let cluster = Cluster::of(engine, 3).await;
        cluster.nodes[0].adapter().bootstrap(cluster.members()).await.unwrap();
        cluster.write("begun").await;
        let leader = cluster.leader().await;
        cluster
            .until("the voters are committed", |cluster| {
                (cluster.with_role(leader, Role::Voter).len() == 3).then_some(())
            })
            .await;
        cluster
    }

    /// Nodes that start from now on run on another engine.
    pub(crate) fn set_engine(&mut self, engine: impl Engine) {
        self.engine = Box::new(engine);
    }

    pub(crate) fn members(&self) -> Vec<Member> {
        self.nodes.iter().map(|node| node.member.clone()).collect()
    }

    /// One more node that knows nothing; returns its place.
    pub(crate) async fn add(&mut self) -> usize {
        let place = self.nodes.len();
        let member = Member {
            node: NodeId::from_random(place as u64 + 1),
            name: NodeName::new(format!("node-{place}")).unwrap(),
            address: format!("node-{place}:1"),
        };
        let directory = TempDir::new().unwrap();
        self.nodes.push(Node { member, directory, commands: Commands::default(), running: None });
        self.start(place).await;
        place
    }

    pub(crate) async fn start(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        node.commands = Commands::default();
        let link = self.network.link(node.id());
        let (directory, machine) = (node.directory.path(), node.commands.clone());
        let opening = async {
            loop {
                match self
                    .engine
                    .open(directory, node.member.node, Box::new(machine.clone()), link.clone())
                    .await
                {
                    Ok(adapter) => return adapter,
                    // A node that was killed a moment ago may still be ending. Nobody announces when it has.
                    Err(error) if error.to_string().contains("another process") => {
                        sleep(Duration::from_millis(5)).await;
                    }
                    Err(error) => panic!("node {place} does not start: {error}"),
                }
            }
        };
        let adapter = timeout(PATIENCE, opening).await.expect("the storage is free in time");
        self.network.join(node.member.node, adapter.clone());
        node.running = Some(adapter);
    }

    /// Ends a node as SIGKILL does.
    pub(crate) fn kill(&mut self, place: usize) {
        self.network.leave(self.nodes[place].id());
        self.nodes[place].running = None;
    }

    /// Ends a node in order.
    pub(crate) async fn stop(&mut self, place: usize) {
        self.network.leave(self.nodes[place].id());
        self.nodes[place].running.take().unwrap().shutdown().await;
    }

    /// Waits until what the running nodes say makes `wanted` true of them.
    pub(crate) async fn until<T>(&self, what: &str, mut wanted: impl FnMut(&Cluster) -> Option<T>) -> T {
        let waiting = async {
            loop {
                let mut news: Vec<watch::Receiver<RaftStatus>> =
                    self.running().map(|place| self.nodes[place].adapter().status()).collect();
                news.iter_mut().for_each(|status| drop(status.borrow_and_update()));
                if let Some(found) = wanted(self) {
                    return found;
                }
                let changes = news.iter_mut().map(|status| Box::pin(status.changed()));
                drop(select_all(changes).await.0);
            }
        };
        let found = timeout(PATIENCE, waiting).await;
        found.unwrap_or_else(|_| {
            let statuses: Vec<_> = self.running().map(|place| self.nodes[place].status()).collect();
            panic!("not in time: {what}; {statuses:#?}")
        })
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = usize> + use<'_> {
        (0..self.nodes.len()).filter(|place| self.nodes[*place].running.is_some())
    }

    /// The place of a leader that all running nodes with a vote follow.
    pub(crate) async fn leader(&self) -> usize {
        self.leader_among(&self.running().collect::<Vec<_>>()).await
    }

    /// The place of a leader that all these nodes follow.
    pub(crate) async fn leader_among(&self, places: &[usize]) -> usize {
        self.until("a leader that all follow", |cluster| {
            let leaders: Vec<_> = places.iter().map(|place| cluster.nodes[*place].status().leader).collect();
            let leader = leaders[0].filter(|first| leaders.iter().all(|leader| *leader == Some(*first)))?;
            places.iter().copied().find(|place| cluster.nodes[*place].id() == leader)
        })
        .await
    }

    /// Proposes to whoever leads until it is certain that it was applied. The command may be applied more than once.
    pub(crate) async fn write(&self, command: &str) -> Applied {
        let writing = async {
            loop {
                let places: Vec<_> = self.running().collect();
                for place in places {
                    match self.nodes[place].adapter().propose(command.as_bytes().to_vec()).await {
                        Ok(applied) => return applied,
                        Err(RaftFailure::NotLeader(_) | RaftFailure::Unknown(_)) => {}
                        Err(error) => panic!("{command}: {error}"),
                    }
                }
                // Between two leaders there is nobody to ask.
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, writing).await.expect("a majority is there")
    }

    /// A place among these whose node has confirmed that it leads, and the index that came of it.
    pub(crate) async fn confirmed(&self, places: &[usize]) -> (usize, u64) {
        let confirming = async {
            loop {
                let leader = self.leader_among(places).await;
                match self.nodes[leader].adapter().confirm_leadership().await {
                    Ok(index) => return (leader, index),
                    Err(RaftFailure::NotLeader(_) | RaftFailure::Unknown(_)) => {
                        sleep(Duration::from_millis(5)).await
                    }
                    Err(error) => panic!("node {leader} confirms nothing: {error}"),
                }
            }
        };
        timeout(PATIENCE, confirming).await.expect("a majority is there")
    }

    /// Waits until all these nodes have applied everything that the leader has, and compares their states.
    pub(crate) async fn agree(&self, places: &[usize]) {
        let (_, index) = self.confirmed(places).await;
        self.until(&format!("entry {index} everywhere"), |cluster| {
            places.iter().all(|place| cluster.nodes[*place].status().applied_index >= index).then_some(())
        })
        .await;
        let mut hashes = Vec::new();
        for place in places {
            hashes.push(self.nodes[*place].adapter().state_hash().await.unwrap());
        }
        assert!(hashes.windows(2).all(|pair| pair[0] == pair[1]), "states differ: {hashes:?}");
        let first = self.nodes[places[0]].commands.all();
        assert!(places.iter().all(|place| self.nodes[*place].commands.all() == first));
    }

    /// The members in a node's configuration, by role.
    pub(crate) fn with_role(&self, place: usize, role: Role) -> Vec<NodeId> {
        let configuration = self.nodes[place].status().configuration;
        configuration.members.iter().filter(|(_, is)| *is == role).map(|(member, _)| member.node).collect()
    }

    pub(crate) fn decided_on(&self, place: usize) -> u64 {
        self.nodes[place].status().configuration.index
    }
}
