//! What the clients of a cluster talk to: a service in every node, beside the state machine that all nodes share.
//!
//! A service owns the meaning of what clients send, and decides which commands are appended for anybody outside: clients, operators and
//! the program that the node runs in. The node owns the connections, and lends the service what it needs of the engine: a
//! [`ServiceNode`]. Who may connect is decided before anything arrives here.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, watch};

use super::connect::Connector;
use super::deposed::deposed;
use super::join::leader_address;
use super::shared::Shared;
use crate::adapter::{Applied, RaftFailure, RaftStatus};
use crate::error::ClusterError;
use crate::member::Member;
use crate::names::{ClusterId, NodeId, NodeName};
use crate::protocol::ClusterView;
use crate::transport::{CallError, Connection, PartSender};

/// Answers the clients of a cluster, in one node of it.
///
/// A future of [`serve`](ClientService::serve) or [`stream`](ClientService::stream) is dropped when its client is gone. The node may be in
/// no cluster yet when it is asked.
pub trait ClientService: Send + Sync + 'static {
    /// Whatever the service does by itself. Dropped when the node stops.
    fn run(&self, node: ServiceNode) -> BoxFuture<'static, ()>;

    /// Appends a command for whoever asks this node, which leads: an operator, or the program that the node runs in. The service refuses what
    /// is for itself alone to propose, and does what has to come before. One whose state machine takes every command from everybody passes
    /// it on to [`ServiceNode::propose`].
    fn propose(
        &self,
        node: ServiceNode,
        command: Vec<u8>,
    ) -> BoxFuture<'static, Result<Applied, RaftFailure>>;

    /// Answers a request. An error reaches the client as [`CallError::Failed`].
    fn serve(&self, node: ServiceNode, request: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, String>>;

    /// Answers a request by any number of parts.
    fn stream(
        &self,
        node: ServiceNode,
        request: Vec<u8>,
        parts: PartSender,
    ) -> BoxFuture<'static, Result<(), String>>;
}

/// A node, as its service sees it. Clones are cheap, and keep no node from stopping.
#[derive(Clone)]
pub struct ServiceNode {
    shared: Weak<Shared>,
    forwarding: Arc<Forwarding>,
}

impl ServiceNode {
    pub(super) fn new(shared: &Arc<Shared>, connector: Arc<Connector>) -> ServiceNode {
        let forwarding = Forwarding { connector, to_leader: Mutex::default() };
        ServiceNode { shared: Arc::downgrade(shared), forwarding: Arc::new(forwarding) }
    }

    /// The id of this node; `None` once it has stopped.
    pub fn id(&self) -> Option<NodeId> {
        self.shared.upgrade().map(|shared| shared.known().node)
    }

    /// The name of this node; `None` once it has stopped.
    pub fn name(&self) -> Option<NodeName> {
        self.shared.upgrade().map(|shared| shared.name().clone())
    }

    /// The cluster, once the node is in one.
    pub fn cluster(&self) -> Option<ClusterId> {
        self.shared.upgrade()?.known().phase.cluster()
    }

    /// What the engine knows, and every change of it; `None` while the node is in no cluster.
    pub fn status(&self) -> Option<watch::Receiver<RaftStatus>> {
        self.shared.upgrade()?.engine().map(|engine| engine.status())
    }

    /// Waits until the node is in a cluster; `None` if it stops before.
    pub async fn bound(&self) -> Option<watch::Receiver<RaftStatus>> {
        let mut phases = self.shared.upgrade()?.phases();
        loop {
            phases.borrow_and_update();
            if let Some(status) = self.status() {
                return Some(status);
            }
            phases.changed().await.ok()?;
        }
    }

    /// Where the leader is, as far as this node knows.
    pub fn leader_address(&self) -> Option<String> {
        let shared = self.shared.upgrade()?;
        let status = shared.engine()?.status().borrow().clone();
        leader_address(&shared, &status)
    }

    /// Where the members are, the leader first.
    pub fn addresses(&self) -> Vec<String> {
        let Some(shared) = self.shared.upgrade() else { return Vec::new() };
        let Some(engine) = shared.engine() else { return Vec::new() };
        let status = engine.status().borrow().clone();
        let mut members: Vec<&Member> =
            status.configuration.members.iter().map(|(member, _)| member).collect();
        members.sort_by_key(|member| status.leader != Some(member.node));
        members.into_iter().map(|member| shared.address_of(member)).collect()
    }

    /// How long ago the leader's engine sent something: what this node has applied is at most about that old. `None` if that is not known.
    pub fn leader_heard(&self) -> Option<Duration> {
        let shared = self.shared.upgrade()?;
        let leader = shared.engine()?.status().borrow().leader?;
        if leader == shared.known().node { Some(Duration::ZERO) } else { shared.frames_of.ago(leader) }
    }

    /// Appends a command at this node, which has to lead. Nobody checks it: only the service has a [`ServiceNode`].
    ///
    /// # Errors
    /// As [`RaftAdapter::propose`](crate::RaftAdapter::propose).
    pub async fn propose(&self, command: Vec<u8>) -> Result<Applied, RaftFailure> {
        let engine = self.shared.upgrade().and_then(|shared| shared.engine().cloned());
        engine.ok_or(RaftFailure::NotLeader(None))?.propose(command).await
    }

    /// Confirms by a round trip to a majority, begun after this call, that this node leads.
    ///
    /// # Errors
    /// As [`RaftAdapter::confirm_leadership`](crate::RaftAdapter::confirm_leadership).
    pub async fn confirm_leadership(&self) -> Result<u64, RaftFailure> {
        let engine = self.shared.upgrade().and_then(|shared| shared.engine().cloned());
        engine.ok_or(RaftFailure::NotLeader(None))?.confirm_leadership().await
    }

    /// The members as this node sees them, which has to lead: a majority confirms that first.
    ///
    /// # Errors
    /// When this node does not lead.
    pub async fn members(&self) -> Result<ClusterView, ClusterError> {
        let shared = self.shared.upgrade().ok_or(RaftFailure::NotLeader(None))?;
        super::members::cluster_view(&shared).await
    }

    /// Passes a client's request on to the service of the leader, and brings back its answer. The request has to say that it was passed on:
    /// two nodes that take each other for the leader would pass it back and forth.
    ///
    /// # Errors
    /// When this node knows no leader or leads itself, the request was certainly not sent.
    pub async fn forward(&self, request: Vec<u8>, limit: Duration) -> Result<Vec<u8>, CallError> {
        let unsent = |why: &str| CallError::NotSent(why.to_owned());
        let shared = self.shared.upgrade().ok_or_else(|| unsent("the node has stopped"))?;
        let status = shared.engine().ok_or_else(|| unsent("the node is in no cluster"))?.status();
        let leader = {
            let status = status.borrow();
            let leader = status.leader.filter(|leader| *leader != shared.known().node);
            leader.and_then(|leader| status.configuration.member(leader)).map(|(member, _)| member.clone())
        };
        let leader = leader.ok_or_else(|| unsent("no other node is known to lead"))?;
        let address = shared.address_of(&leader);
        drop(shared);
        self.forwarding.call(&leader, &address, status, request, limit).await
    }
}

impl fmt::Debug for ServiceNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceNode").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// The connection for everything that is passed on.
struct Forwarding {
    connector: Arc<Connector>,
    to_leader: Mutex<Option<(NodeId, Connection)>>,
}

impl Forwarding {
    async fn call(
        &self,
        leader: &Member,
        address: &str,
        status: watch::Receiver<RaftStatus>,
        request: Vec<u8>,
        limit: Duration,
    ) -> Result<Vec<u8>, CallError> {
        let connecting = tokio::time::timeout(limit, self.connection(leader, address, status));
        let late = |_| CallError::NotSent(format!("no connection to the leader within {limit:?}"));
        let connection = connecting.await.map_err(late)??;
        connection.call(request, limit).await
    }

    /// Those who come while it is made wait for it. It closes when its node no longer leads, so nobody waits for an answer that does not
    /// come; one task sees to that for all requests.
    async fn connection(
        &self,
        leader: &Member,
        address: &str,
        status: watch::Receiver<RaftStatus>,
    ) -> Result<Connection, CallError> {
        let mut to_leader = self.to_leader.lock().await;
        match &*to_leader {
            Some((node, connection)) if *node == leader.node && connection.is_open() => {
                Ok(connection.clone())
            }
            _ => {
                let connection = self.connector.connect_as_client(leader, address).await?;
                let (node, closing) = (leader.node, connection.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = closing.closed() => {}
                        () = deposed(node, status) => closing.close(),
                    }
                });
                *to_leader = Some((leader.node, connection.clone()));
                Ok(connection)
            }
        }
    }
}
