//! A running node: its start, its handle, its end.
//!
//! ```text
//!  Cluster::start ──▶ directory, listener ──▶ forming (form) ──▶ bound: the engine runs ──▶ ready
//!                            │                                      ▲
//!                            └── answers invitations, joins, frames (host)
//! ```
//!
//! The listener is open from the first moment: a node answers invitations while it waits for others to answer its own.

mod addresses;
mod ask;
mod connect;
mod deposed;
mod engine;
mod form;
mod giving_up;
mod host;
mod join;
mod members;
mod metrics;
mod probe;
mod promote;
mod removed;
mod service;
mod shared;
mod waiting;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bellwether_deadman::boot_now;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use engine::{Engines, Opening};
pub use metrics::ClusterMetrics;
pub use probe::NodeProbe;
pub use service::{ClientService, ServiceNode};

use self::ask::Ask;
use self::connect::Connector;
use self::form::Forming;
use self::host::NodeHost;
use self::shared::{Parts, Shared, draw_node_id};
use crate::adapter::{Applied, RaftStatus};
use crate::admin::{error_of, senseless};
use crate::config::Config;
use crate::directory::DataDirectory;
use crate::error::{ClusterError, ErrorKind};
use crate::formation::Phase;
use crate::ledger::BootstrapLedger;
use crate::member::{Configuration, Member};
use crate::names::{ClusterId, NodeId};
use crate::peer::Peer;
use crate::protocol::{AdminAnswer, AdminCommand, AdminRequest, ClusterView, FailureKind, Named, NodeView};
use crate::resolver::Resolver;
use crate::state_machine::StateMachine;
use crate::transport::{Listener, Security};

/// How a node began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartMode {
    /// It formed a cluster.
    Bootstrap,
    /// It joined one.
    Join,
    /// It went on from its disk.
    Restart,
}

impl fmt::Display for StartMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StartMode::Bootstrap => "bootstrap",
            StartMode::Join => "join",
            StartMode::Restart => "restart",
        })
    }
}

/// How a start went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartResult {
    /// How the node began.
    pub mode: StartMode,
    /// Who leads.
    pub leader: Option<Peer>,
    /// The members.
    pub peers: Vec<Peer>,
}

/// What a node is made of besides its settings.
pub struct NodeParts {
    /// Finds the other nodes.
    pub resolver: Arc<dyn Resolver>,
    /// Who may connect.
    pub security: Security,
    /// The Raft engine.
    pub engines: Arc<dyn Engines>,
    /// Makes the state machine, in the state that it begins with.
    pub machine: Box<dyn Fn() -> Box<dyn StateMachine> + Send + Sync>,
    /// The record that a cluster was formed, if it is kept.
    pub ledger: Option<Arc<dyn BootstrapLedger>>,
    /// What answers clients, if anything does.
    pub service: Option<Arc<dyn ClientService>>,
}

/// A node of a Raft cluster.
pub struct Cluster {
    shared: Arc<Shared>,
    ask: Arc<dyn Ask>,
    listener: Option<Listener>,
    local_address: SocketAddr,
    tasks: JoinSet<()>,
}

impl Cluster {
    /// Starts a node, and returns when it is ready: a leader is known, the node is a member, and it has caught up.
    ///
    /// A node whose directory has state goes on from there, whatever the settings say. One without forms a cluster with the others, or joins
    /// one. A node that was removed while it was down puts its old state away, and joins again under another id.
    ///
    /// # Errors
    /// A join timeout, where the settings have one; a cluster to give up that still runs; everything else that somebody has to decide or
    /// mend.
    pub async fn start(config: Config, parts: NodeParts) -> Result<(Cluster, StartResult), ClusterError> {
        Cluster::start_watched(config, parts, &NodeProbe::default()).await
    }

    /// As [`start`](Cluster::start); meanwhile, and until the node ends, `probe` looks at it.
    ///
    /// # Errors
    /// As [`start`](Cluster::start).
    pub async fn start_watched(
        config: Config,
        parts: NodeParts,
        probe: &NodeProbe,
    ) -> Result<(Cluster, StartResult), ClusterError> {
        match Cluster::start_once(&config, &parts, probe).await {
            Err(error) if error.kind() == ErrorKind::Removed => {
                tracing::warn!(
                    "this node was removed from its cluster; it joins again under another id, and keeps its old state in archive/"
                );
                Cluster::start_once(&config, &parts, probe).await
            }
            started => started,
        }
    }

    async fn start_once(
        config: &Config,
        parts: &NodeParts,
        probe: &NodeProbe,
    ) -> Result<(Cluster, StartResult), ClusterError> {
        let (path, name) = (config.directory.clone(), config.name.clone());
        let open = move || DataDirectory::open(&path, &name, draw_node_id());
        let directory = shared::blocking(open).await?;
        let connector = Arc::new(Connector::new(parts.security.clone())?);
        let directory = giving_up::give_up_if_told(directory, config, parts, &*connector).await?;
        let host = Arc::new(NodeHost::default());
        let listener = Listener::bind(&config.bind, parts.security.clone(), Arc::clone(&host) as _).await;
        let listener = listener?;
        let advertised = config.advertise.clone().unwrap_or_else(|| listener.local_address().to_string());
        parts.security.check_advertised(&advertised)?;
        let shared = Arc::new(Shared::new(Parts {
            config: config.clone(),
            resolver: Arc::clone(&parts.resolver),
            advertised,
            connector: Arc::clone(&connector),
            engines: Arc::clone(&parts.engines),
            machine: (parts.machine)(),
            directory,
        }));
        connector.attach(&shared);
        probe.attach(&shared);
        let ask: Arc<dyn Ask> = Arc::clone(&connector) as _;
        host.attach(&shared, &ask);
        let mut tasks = JoinSet::new();
        if let Some(service) = &parts.service {
            let node = ServiceNode::new(&shared, connector);
            shared.attach_service(Arc::clone(service), node.clone());
            tasks.spawn(service.run(node));
        }
        tasks.spawn(promote::promote_learners(Arc::clone(&shared)));
        let local_address = listener.local_address();
        let mut cluster = Cluster { shared, ask, listener: Some(listener), local_address, tasks };
        let started = cluster.form(parts).await;
        match started {
            Ok(result) => {
                cluster.tasks.spawn(addresses::keep_up_to_date(Arc::clone(&cluster.shared)));
                Ok((cluster, result))
            }
            Err(error) => {
                cluster.stop().await;
                Err(error)
            }
        }
    }

    async fn form(&mut self, parts: &NodeParts) -> Result<StartResult, ClusterError> {
        let mut forming = Forming::new(Arc::clone(&self.shared), Arc::clone(&self.ask), parts.ledger.clone());
        let mode = async {
            let mode = if let Phase::Bound { .. } = self.shared.known().phase {
                addresses::learn(&self.shared).await;
                self.shared.restart().await?;
                StartMode::Restart
            } else {
                forming.run().await?
            };
            forming.bind_voters().await?;
            self.shared.waiting.now_for(
                "this node is in a cluster, and waits for its leader: a majority of the voters has to be up",
            );
            removed::ready_or_removed(&self.shared, &*self.ask, mode).await?;
            Ok(mode)
        };
        let mode = async {
            tokio::select! {
                mode = mode => mode,
                () = waiting::tell(&self.shared) => unreachable!("it tells until it is dropped"),
            }
        };
        let limit = self.shared.config.bootstrap.join_timeout;
        let mode = match limit {
            None => mode.await,
            Some(limit) => match tokio::time::timeout(limit, mode).await {
                Ok(mode) => mode,
                Err(_) => Err(ClusterError::new(
                    ErrorKind::JoinTimeout,
                    format!("not ready after {limit:?}: {}", self.shared.waiting.sentence()),
                )),
            },
        }?;
        let status = self.status();
        let peer = |member: &Member| Peer::new(member.name.clone(), self.shared.address_of(member));
        let leader = status.leader.and_then(|leader| status.configuration.member(leader));
        Ok(StartResult {
            mode,
            leader: leader.map(|(member, _)| peer(member)),
            peers: status.configuration.members.iter().map(|(member, _)| peer(member)).collect(),
        })
    }

    /// The id of this node.
    pub fn node_id(&self) -> NodeId {
        self.shared.known().node
    }

    /// The cluster.
    pub fn cluster_id(&self) -> Option<ClusterId> {
        self.shared.known().phase.cluster()
    }

    /// Where this node listens.
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    /// What this node knows.
    pub fn status(&self) -> RaftStatus {
        self.shared.engine().map_or_else(RaftStatus::default, |engine| engine.status().borrow().clone())
    }

    /// What this node knows, and every change of it.
    ///
    /// # Panics
    /// Never: a node that was started has an engine.
    pub fn changes(&self) -> watch::Receiver<RaftStatus> {
        self.shared.engine().expect("a node that was started has an engine").status()
    }

    /// Whether this node believes that it leads. Another may lead already: what matters is asked with [`propose`](Cluster::propose).
    pub fn is_leader(&self) -> bool {
        self.status().is_leader
    }

    /// Where the leader is, as far as this node knows.
    pub fn leader_address(&self) -> Option<String> {
        join::leader_address(&self.shared, &self.status())
    }

    /// The members.
    pub fn configuration(&self) -> Configuration {
        self.status().configuration
    }

    /// What this node has counted.
    pub fn metrics(&self) -> ClusterMetrics {
        self.shared.counters.read()
    }

    /// What this node says of itself, with a hash of its state machine.
    ///
    /// # Errors
    /// When the node has stopped.
    pub async fn view(&self) -> Result<NodeView, ClusterError> {
        members::node_view(&self.shared).await
    }

    /// Appends a command, here or by way of the leader, and returns the answer of the state machine. Where the nodes have a
    /// [`ClientService`], it decides which commands may be proposed like this.
    ///
    /// # Errors
    /// Refused: the service does not take it. Not leader: nothing was done. Unknown: it may have been applied, and a command that must not be applied twice needs a number that the
    /// state machine knows it by.
    pub async fn propose(&self, command: Vec<u8>) -> Result<Applied, ClusterError> {
        match self.administer(AdminCommand::Propose(command)).await? {
            AdminAnswer::Applied { index, answer } => Ok(Applied { index, answer }),
            _ => Err(senseless()),
        }
    }

    /// The members as the leader sees them, after a majority has confirmed that it leads.
    ///
    /// # Errors
    /// Without a leader.
    pub async fn members(&self) -> Result<ClusterView, ClusterError> {
        match self.administer(AdminCommand::Members).await? {
            AdminAnswer::Members(view) => Ok(view),
            _ => Err(senseless()),
        }
    }

    /// Asks the node at this address, which is in no cluster, to join this one. It votes when it has caught up.
    ///
    /// # Errors
    /// When the node cannot be reached, or is in a cluster.
    pub async fn add_voter(&self, address: impl Into<String>) -> Result<String, ClusterError> {
        self.done(AdminCommand::Add(address.into())).await
    }

    /// Makes a voter of a learner now.
    ///
    /// # Errors
    /// When it votes already, or the configuration changes meanwhile.
    pub async fn promote(&self, member: Named) -> Result<String, ClusterError> {
        self.done(AdminCommand::Promote(member)).await
    }

    /// Removes a member. It keeps its directory, and may join this cluster again under another id.
    ///
    /// # Errors
    /// When the voters that are left would not include a majority that is up.
    pub async fn remove_server(&self, member: Named) -> Result<String, ClusterError> {
        self.done(AdminCommand::Remove(member)).await
    }

    /// Hands the leadership of the cluster to that voter, or to the one that has most of the log.
    ///
    /// # Errors
    /// When that member does not vote, or did not take over.
    pub async fn transfer(&self, to: Option<Named>) -> Result<String, ClusterError> {
        self.done(AdminCommand::Transfer(to)).await
    }

    /// Returns when this node can no longer take part: its disk failed, or it was removed.
    pub async fn stopped(&self) -> ClusterError {
        removed::stopped(&self.shared, &*self.ask).await
    }

    /// Hands over if this node leads, and stops. The membership does not change: the node is expected back.
    pub async fn shutdown(mut self) {
        if let Some(engine) = self.shared.engine()
            && engine.status().borrow().is_leader
        {
            let handed_over = members::transfer(&self.shared, engine, None);
            match tokio::time::timeout(HANDOVER_LIMIT, handed_over).await {
                Ok(Ok(to)) => tracing::info!(to = %to.name, "handed the leadership of the cluster over"),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "the leadership of the cluster could not be handed over")
                }
                Err(_) => tracing::warn!("the leadership of the cluster could not be handed over in time"),
            }
        }
        self.stop().await;
    }

    /// Stops at once and hands nothing over, as the end of the process would.
    pub async fn halt(mut self) {
        self.stop().await;
    }

    async fn stop(&mut self) {
        self.tasks.shutdown().await;
        if let Some(engine) = self.shared.engine() {
            engine.shutdown().await;
        }
        if let Some(listener) = self.listener.take() {
            listener.shutdown().await;
        }
    }

    async fn done(&self, what: AdminCommand) -> Result<String, ClusterError> {
        match self.administer(what).await? {
            AdminAnswer::Done(sentence) => Ok(sentence),
            _ => Err(senseless()),
        }
    }

    /// Asks again for a while what certainly was not done: there may be an election just now.
    async fn administer(&self, what: AdminCommand) -> Result<AdminAnswer, ClusterError> {
        let begin = boot_now();
        loop {
            let request = AdminRequest { what: what.clone(), is_forwarded: false };
            match members::administer(&self.shared, &*self.ask, request).await {
                AdminAnswer::Failed { kind: FailureKind::NotLeader, .. }
                    if boot_now().since(begin) < ELECTION_LIMIT =>
                {
                    tokio::time::sleep(ELECTION_PAUSE).await;
                }
                AdminAnswer::Failed { kind, message } => return Err(error_of(kind, message)),
                answer => return Ok(answer),
            }
        }
    }
}

/// For the nodes to agree on a leader: some elections.
const ELECTION_LIMIT: Duration = Duration::from_secs(5);
/// Between two attempts meanwhile.
const ELECTION_PAUSE: Duration = Duration::from_millis(20);
/// For another voter to take over before this node stops without it.
const HANDOVER_LIMIT: Duration = Duration::from_secs(2);
