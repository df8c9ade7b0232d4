//! What all tasks of a node share, and the only way to change the phase of its formation.
//!
//! One change of the phase at a time: it is decided on what the disk says, written to disk, and only then acted on. Whoever waits for a
//! change of the phase hears of it from a channel.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bellwether_deadman::{boot_now, random_bits};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch};

use super::addresses::AddressBook;
use super::connect::Connector;
use super::metrics::Counters;
use super::service::{ClientService, ServiceNode};
use super::waiting::Waiting;
use crate::adapter::{Applied, RaftAdapter};
use crate::config::Config;
use crate::directory::{DataDirectory, Identity};
use crate::error::{ClusterError, ErrorKind};
use crate::formation::{Phase, Proposal, Voter};
use crate::member::Member;
use crate::names::{ClusterId, NodeId, NodeName};
use crate::node::engine::Engines;
use crate::protocol::Named;
use crate::resolver::Resolver;
use crate::state_machine::StateMachine;

pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) advertised: String,
    pub(super) book: AddressBook,
    pub(super) counters: Counters,
    pub(super) waiting: Waiting,
    connector: Arc<Connector>,
    /// Members that answered this one.
    pub(super) heard: Heard,
    /// Members whose engines sent something: a leader does, to all members.
    pub(super) frames_of: Heard,
    engines: Arc<dyn Engines>,
    /// Taken by the engine when the node is bound.
    machine: Mutex<Option<Box<dyn StateMachine>>>,
    directory: Arc<AsyncMutex<DataDirectory>>,
    engine: OnceLock<Arc<dyn RaftAdapter>>,
    service: OnceLock<(Arc<dyn ClientService>, ServiceNode)>,
    unbindable: OnceLock<ClusterError>,
    identity: watch::Sender<Known>,
    /// Another node to ask whether this one may join, and which cluster that is.
    pub(super) invited_by: watch::Sender<Option<(ClusterId, String)>>,
}

/// What the disk says, for whoever only reads it.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) node: NodeId,
    pub(super) phase: Phase,
}

pub(super) struct Parts {
    pub(super) config: Config,
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) advertised: String,
    pub(super) connector: Arc<Connector>,
    pub(super) engines: Arc<dyn Engines>,
    pub(super) machine: Box<dyn StateMachine>,
    pub(super) directory: DataDirectory,
}

impl Shared {
    pub(super) fn new(parts: Parts) -> Shared {
        let known = known(&parts.directory);
        Shared {
            config: parts.config,
            resolver: parts.resolver,
            advertised: parts.advertised,
            book: AddressBook::default(),
            counters: Counters::default(),
            waiting: Waiting::default(),
            connector: parts.connector,
            heard: Heard::default(),
            frames_of: Heard::default(),
            engines: parts.engines,
            machine: Mutex::new(Some(parts.machine)),
            directory: Arc::new(AsyncMutex::new(parts.directory)),
            engine: OnceLock::new(),
            service: OnceLock::new(),
            unbindable: OnceLock::new(),
            identity: watch::Sender::new(known),
            invited_by: watch::Sender::new(None),
        }
    }

    pub(super) fn known(&self) -> Known {
        self.identity.borrow().clone()
    }

    pub(super) fn phases(&self) -> watch::Receiver<Known> {
        self.identity.subscribe()
    }

    pub(super) fn name(&self) -> &NodeName {
        &self.config.name
    }

    /// This node as a member.
    pub(super) fn member(&self) -> Member {
        Member { node: self.known().node, name: self.name().clone(), address: self.advertised.clone() }
    }

    pub(super) fn voter(&self) -> Voter {
        Voter { node: self.known().node, name: self.name().clone() }
    }

    /// The engine, once this node is bound.
    pub(super) fn engine(&self) -> Option<&Arc<dyn RaftAdapter>> {
        self.engine.get()
    }

    /// The engine, or why there is none.
    pub(super) fn bound_engine(&self) -> Result<&Arc<dyn RaftAdapter>, ClusterError> {
        self.engine
            .get()
            .ok_or_else(|| ClusterError::new(ErrorKind::NotLeader, "this node is in no cluster yet"))
    }

    pub(super) fn attach_service(&self, service: Arc<dyn ClientService>, node: ServiceNode) {
        let _ = self.service.set((service, node));
    }

    /// What answers clients, if anything does.
    pub(super) fn service(&self) -> Option<&(Arc<dyn ClientService>, ServiceNode)> {
        self.service.get()
    }

    /// Appends a command for somebody outside. Where there is a service, it decides whether that may be.
    pub(super) async fn propose(&self, command: Vec<u8>) -> Result<Applied, ClusterError> {
        match self.service() {
            Some((service, node)) => Ok(service.propose(node.clone(), command).await?),
            None => Ok(self.bound_engine()?.propose(command).await?),
        }
    }

    /// Changes the phase as `change` decides on the present one; returns its answer. What it decides is on disk by then.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Phase) -> (Option<Phase>, T) + Send + 'static,
    ) -> Result<T, ClusterError> {
        let mut directory = Arc::clone(&self.directory).lock_owned().await;
        let (directory, answer) = blocking(move || {
            let (next, answer) = change(&directory.identity().phase);
            if let Some(next) = next {
                directory.set_phase(next)?;
            }
            Ok((directory, answer))
        })
        .await?;
        self.publish(&directory);
        Ok(answer)
    }

    /// Binds this node to a cluster, if `change` says so: makes its storage, writes the phase, and starts the engine, in this order.
    pub(super) async fn bind(
        &self,
        change: impl FnOnce(&Identity) -> Result<Option<Phase>, ClusterError> + Send,
    ) -> Result<(), ClusterError> {
        let directory = Arc::clone(&self.directory).lock_owned().await;
        match change(directory.identity())? {
            None => Ok(()),
            Some(next) => self.bind_to(directory, next).await,
        }
    }

    /// Why this node cannot be bound any more, if it failed once: whoever started it has to hear of it, and not only the peer that tried.
    pub(super) fn unbindable(&self) -> Option<&ClusterError> {
        self.unbindable.get()
    }

    /// Starts the engine of a node that is bound.
    pub(super) async fn restart(&self) -> Result<(), ClusterError> {
        let directory = Arc::clone(&self.directory).lock_owned().await;
        let phase = directory.identity().phase.clone();
        self.bind_to(directory, phase).await
    }

    async fn bind_to(
        &self,
        directory: OwnedMutexGuard<DataDirectory>,
        next: Phase,
    ) -> Result<(), ClusterError> {
        let bound = self.try_bind_to(directory, next).await;
        if let Err(error) = &bound {
            let _ = self.unbindable.set(error.clone());
        }
        bound
    }

    async fn try_bind_to(
        &self,
        mut directory: OwnedMutexGuard<DataDirectory>,
        next: Phase,
    ) -> Result<(), ClusterError> {
        let Phase::Bound { cluster, .. } = next else { return Ok(()) };
        let machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner).take();
        let machine = machine.ok_or_else(|| {
            ClusterError::new(ErrorKind::Stopped, "this node could not be bound before: start it again")
        })?;
        let opening = super::engine::Opening {
            directory: directory.path().to_owned(),
            node: directory.identity().node,
            cluster,
            profile: self.config.profile,
        };
        let link = self.connector.link(cluster, (opening.node, self.name().clone()));
        let engine = self.engines.open(opening, machine, link).await?;
        if directory.identity().phase != next {
            directory = blocking(move || directory.set_phase(next).map(|()| directory)).await?;
        }
        let _ = self.engine.set(engine);
        self.publish(&directory);
        Ok(())
    }

    /// All voters are bound: Raft begins.
    pub(super) async fn begin_raft(&self, voters: &[Voter]) -> Result<(), ClusterError> {
        let members = voters.iter().map(|voter| self.first_member(voter)).collect();
        Ok(self.bound_engine()?.bootstrap(members).await?)
    }

    fn first_member(&self, voter: &Voter) -> Member {
        let own = (voter.name == *self.name()).then(|| self.advertised.clone());
        let address = own.or_else(|| self.book.of(&voter.name)).unwrap_or_default();
        Member { node: voter.node, name: voter.name.clone(), address }
    }

    /// Goes on under another node id, with what belonged to the old one put away, if `change` says so. It decides on what the disk says
    /// now: whoever asked may have been invited or bound since, and that must not be undone.
    pub(super) async fn start_over(
        &self,
        change: impl FnOnce(&Phase) -> Option<Phase>,
    ) -> Result<(), ClusterError> {
        let mut directory = Arc::clone(&self.directory).lock_owned().await;
        let Some(phase) = change(&directory.identity().phase) else { return Ok(()) };
        let drawn = draw_node_id();
        let directory = blocking(move || directory.start_over(drawn, phase).map(|()| directory)).await?;
        self.publish(&directory);
        Ok(())
    }

    /// A new proposal to these, written down.
    pub(super) async fn propose_to(
        &self,
        others: Vec<NodeName>,
        above: u64,
    ) -> Result<Option<Proposal>, ClusterError> {
        let (seed, drawn) = (self.voter(), draw_cluster_id());
        let propose = move |phase: &Phase| match Proposal::new(phase, seed, others, drawn, above) {
            Some((next, proposal)) => (Some(next), Some(proposal)),
            None => (None, None),
        };
        self.change(propose).await
    }

    fn publish(&self, directory: &DataDirectory) {
        self.identity.send_replace(known(directory));
    }

    /// The address of a member: what the resolver says, or what the member said when it was added.
    pub(super) fn address_of(&self, member: &Member) -> String {
        self.book.of(&member.name).unwrap_or_else(|| member.address.clone())
    }

    /// The member that somebody means.
    pub(super) fn find(&self, named: &Named) -> Result<Member, ClusterError> {
        let status = self.bound_engine()?.status();
        let status = status.borrow();
        let configuration = &status.configuration;
        let found = match named {
            Named::Id(id) => configuration.member(*id).map(|(member, _)| member),
            Named::Name(name) => {
                let mut all = configuration.named(name);
                let first = all.next().map(|(member, _)| member);
                if all.next().is_some() {
                    return Err(ClusterError::invalid(format!(
                        "there are two members named {name}, because one takes the place of the other: name one by its node id"
                    )));
                }
                first
            }
        };
        let names = || {
            configuration
                .members
                .iter()
                .map(|(member, _)| member.name.to_string())
                .collect::<Vec<_>>()
                .join(", ")
        };
        found.cloned().ok_or_else(|| {
            ClusterError::invalid(format!("{named} is not a member; the members are {}", names()))
        })
    }
}

/// When each member answered last. Members come and go, so the one that was heard least recently makes room.
#[derive(Default)]
pub(super) struct Heard(Mutex<BTreeMap<NodeId, bellwether_core::Boot>>);

/// More than a cluster ever has at a time.
const HEARD_MAX: usize = 1_024;

impl Heard {
    pub(super) fn from(&self, node: NodeId) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.insert(node, boot_now());
        if heard.len() > HEARD_MAX
            && let Some(oldest) = heard.iter().min_by_key(|(_, at)| **at).map(|(node, _)| *node)
        {
            heard.remove(&oldest);
        }
    }

    pub(super) fn ago(&self, node: NodeId) -> Option<Duration> {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.get(&node).map(|at| boot_now().since(*at))
    }
}

fn known(directory: &DataDirectory) -> Known {
    let identity = directory.identity();
    Known { node: identity.node, phase: identity.phase.clone() }
}

pub(super) fn draw_node_id() -> NodeId {
    NodeId::from_random(random_bits() as u64)
}

fn draw_cluster_id() -> ClusterId {
    ClusterId::from_random(random_bits())
}

/// Off the tasks that answer heartbeats: this waits for the disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ClusterError> + Send + 'static,
) -> Result<T, ClusterError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(ClusterError::new(ErrorKind::Stopped, "the node is stopping")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_more_nodes_than_a_cluster_has_the_latest_are_remembered() {
        let heard = Heard::default();
        let node = |number: usize| NodeId::from_random(number as u64);
        for number in (0..3 * HEARD_MAX).rev() {
            heard.from(node(number));
        }
        assert!(heard.ago(node(0)).is_some() && heard.ago(node(3 * HEARD_MAX - 1)).is_none());
        assert_eq!(heard.0.lock().unwrap().len(), HEARD_MAX);
    }
}
