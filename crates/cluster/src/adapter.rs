//! What this crate needs of a Raft engine, and what it gives to one.
//!
//! An engine keeps the log and the state machine, and agrees with its peers. It is told who its peers are by the members in its log, and
//! reaches them through a [`PeerLink`]. Everything around it is not its concern: which cluster a node belongs to, who may connect,
//! where names lead. Its messages are bytes to everybody else.
//!
//! One conformance suite (`tests/adapter`) runs on every engine.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::member::{Configuration, Member};
use crate::names::NodeId;

/// A Raft engine with its storage, for one node.
///
/// Every method that returns a future may be dropped: what it began may still happen.
pub trait RaftAdapter: Send + Sync + 'static {
    /// Begins a cluster with these voters. Called at one of them, once, on empty storage; called again with the same voters, it changes
    /// nothing.
    fn bootstrap(&self, voters: Vec<Member>) -> BoxFuture<'_, Result<(), RaftFailure>>;

    /// Whether the storage holds a vote or a log.
    fn has_existing_state(&self) -> BoxFuture<'_, Result<bool, RaftFailure>>;

    /// Appends a command, waits until a majority has it on disk and this node has applied it, and returns the answer of the state machine.
    fn propose(&self, command: Vec<u8>) -> BoxFuture<'_, Result<Applied, RaftFailure>>;

    /// Confirms by a round trip to a majority, begun after this call, that this node leads; returns an index that includes everything
    /// acknowledged before the call. The state machine has applied it by then.
    fn confirm_leadership(&self) -> BoxFuture<'_, Result<u64, RaftFailure>>;

    /// Adds a member that receives the log without voting, or gives a member another address.
    fn add_learner(&self, member: Member) -> BoxFuture<'_, Result<(), RaftFailure>>;

    /// Makes a voter of a learner, and removes `in_place_of` in the same change. Only if the configuration still has the index `decided_on`.
    fn promote(
        &self,
        node: NodeId,
        in_place_of: Option<NodeId>,
        decided_on: u64,
    ) -> BoxFuture<'_, Result<(), RaftFailure>>;

    /// Removes a member. Only if the configuration still has the index `decided_on`.
    fn remove(&self, node: NodeId, decided_on: u64) -> BoxFuture<'_, Result<(), RaftFailure>>;

    /// Hands leadership to that voter. Returns when this node has heard of the new leader.
    fn transfer(&self, to: NodeId) -> BoxFuture<'_, Result<(), RaftFailure>>;

    /// What this node knows, and every change of it.
    fn status(&self) -> watch::Receiver<RaftStatus>;

    /// Returns when the task that everything of the engine goes through has answered: it runs, whoever leads.
    fn answers(&self) -> BoxFuture<'_, Result<(), RaftFailure>>;

    /// A message of a peer's engine, as [`PeerLink::call`] took it there; returns the answer.
    fn receive(&self, message: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, RaftFailure>>;

    /// A hash of the state machine, with the index of the last entry in it.
    fn state_hash(&self) -> BoxFuture<'_, Result<(u64, u64), RaftFailure>>;

    /// Stops, with everything on disk.
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}

/// The way to the engines of other members.
pub trait PeerLink: Send + Sync + 'static {
    /// Takes a message to a member's [`RaftAdapter::receive`], and brings back the answer. Fails after `limit`; the message may have arrived.
    fn call(
        &self,
        to: &Member,
        lane: Lane,
        message: Vec<u8>,
        limit: Duration,
    ) -> BoxFuture<'_, Result<Vec<u8>, Unreached>>;
}

impl<L: PeerLink + ?Sized> PeerLink for Arc<L> {
    fn call(
        &self,
        to: &Member,
        lane: Lane,
        message: Vec<u8>,
        limit: Duration,
    ) -> BoxFuture<'_, Result<Vec<u8>, Unreached>> {
        (**self).call(to, lane, message, limit)
    }
}

/// Messages of different lanes do not wait for each other: a heartbeat never stands behind a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Lane {
    /// Votes and heartbeats.
    Heartbeat,
    /// Entries.
    Replication,
    /// Snapshots.
    Snapshot,
}

/// A message had no answer. It may have arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached(pub String);

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreached {}

/// A command that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its index in the log.
    pub index: u64,
    /// What the state machine answered.
    pub answer: Vec<u8>,
}

/// What a node knows about its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RaftStatus {
    /// The leader, as far as this node knows. A node that is cut off may believe in an old one.
    pub leader: Option<NodeId>,
    /// Whether this node believes that it leads.
    pub is_leader: bool,
    /// The term.
    pub term: u64,
    /// The last entry in the log.
    pub last_index: u64,
    /// The last entry that this node knows to be committed.
    pub committed_index: u64,
    /// The last entry in the state machine.
    pub applied_index: u64,
    /// The members, from the last configuration that is known to be committed.
    pub configuration: Configuration,
    /// At the leader: the last entry that each other member has on disk.
    pub matched: Vec<(NodeId, u64)>,
    /// Why the engine has stopped, if it has. Nothing works from then on; the process has to end.
    pub stopped: Option<String>,
}

/// Why an engine did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RaftFailure {
    /// Another member leads, or none is known to. Nothing was done.
    NotLeader(Option<NodeId>),
    /// It may have been done, or may still be: leadership changed before it was committed, or it took too long.
    Unknown(String),
    /// It was not done: the configuration changed, or the change would be unsafe.
    Refused(String),
    /// The engine has stopped; see [`RaftStatus::stopped`].
    Stopped(String),
}

impl fmt::Display for RaftFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RaftFailure::NotLeader(Some(leader)) => write!(f, "this node does not lead; node {leader} does"),
            RaftFailure::NotLeader(None) => f.write_str("no leader is known"),
            RaftFailure::Unknown(why) => write!(f, "it is unknown whether this happened: {why}"),
            RaftFailure::Refused(why) => f.write_str(why),
            RaftFailure::Stopped(why) => write!(f, "the node has stopped: {why}"),
        }
    }
}

impl std::error::Error for RaftFailure {}
