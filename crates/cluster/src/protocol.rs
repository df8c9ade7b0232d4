//! What nodes say to each other about clusters and members, and what operators ask them.
//!
//! Raft's own messages are not here: they are the engine's, and bytes to everybody else.

use serde::{Deserialize, Serialize};

use crate::formation::{Invitation, InviteAnswer};
use crate::member::{Member, Role};
use crate::names::{ClusterId, NodeId, NodeName};

/// Between nodes, before they are in one cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum FormationRequest {
    /// Form a cluster with me.
    Invite(Invitation),
    /// All have consented: bind yourself to this cluster, if you are this node.
    Bind(ClusterId, NodeId),
    /// May I join?
    Join {
        /// Who asks.
        member: Member,
        /// The cluster that it belonged to, or that the ledger names: it joins no other.
        only: Option<ClusterId>,
    },
    /// Join this cluster, of which this is the leader's address. Only a node in no cluster does.
    Come(ClusterId, String),
    /// Is this node, which believes so, a member of this cluster?
    Standing(NodeId, ClusterId),
    /// Are you in this cluster, and does it have a leader?
    IsLed(ClusterId),
}

/// The answers, in the same order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum FormationAnswer {
    Invited {
        node: NodeId,
        answer: InviteAnswer,
    },
    /// The node that is bound now, or why it is not.
    Bound(Result<NodeId, String>),
    Join(JoinAnswer),
    Coming(Result<(), String>),
    Standing(Standing),
    Led(bool),
}

/// Whether a node is a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Standing {
    /// It is, or the node that was asked cannot tell.
    Unknown,
    /// It is not: a majority has confirmed the leader that says so.
    Removed,
}

/// Whether a node may join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum JoinAnswer {
    /// It is a member: a majority of this cluster has committed that.
    Member(ClusterId),
    /// The node that was asked is in no cluster.
    NoCluster,
    /// The node that was asked is in this cluster; the leader is there, if one is known.
    AskLeader(ClusterId, Option<String>),
    /// Not now, or not at all.
    Refused(String),
}

/// What operators ask of any node. A follower passes it on to the leader, once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AdminRequest {
    pub(crate) what: AdminCommand,
    /// A follower has passed this on: whoever receives it does not do so again.
    pub(crate) is_forwarded: bool,
}

/// What can be asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum AdminCommand {
    Members,
    Add(String),
    Promote(Named),
    Remove(Named),
    Transfer(Option<Named>),
    /// Of the node itself, and never passed on.
    Node,
    /// A command for the state machine.
    Propose(Vec<u8>),
}

/// A member by its name or by its node id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Named {
    /// By its name.
    Name(NodeName),
    /// By its id.
    Id(NodeId),
}

impl std::str::FromStr for Named {
    type Err = crate::names::InvalidName;

    /// Sixteen hexadecimal digits are an id, and everything else a name.
    fn from_str(text: &str) -> Result<Named, Self::Err> {
        text.parse().map(Named::Id).or_else(|_| text.parse().map(Named::Name))
    }
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Named::Name(name) => name.fmt(f),
            Named::Id(id) => id.fmt(f),
        }
    }
}

/// The answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum AdminAnswer {
    Members(ClusterView),
    /// Done, with a sentence for people.
    Done(String),
    Node(NodeView),
    Applied {
        index: u64,
        answer: Vec<u8>,
    },
    Failed {
        kind: FailureKind,
        message: String,
    },
}

/// Why a request of an operator failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FailureKind {
    NotLeader,
    Unknown,
    Refused,
    Stopped,
}

/// A cluster as its leader sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterView {
    /// The cluster.
    pub cluster: ClusterId,
    /// The term.
    pub term: u64,
    /// The last entry that is committed.
    pub committed_index: u64,
    /// Its members.
    pub members: Vec<MemberView>,
}

/// A member as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberView {
    /// Who it is.
    pub member: Member,
    /// Whether it votes.
    pub role: Role,
    /// Whether it leads.
    pub is_leader: bool,
    /// Entries that it does not have on disk yet; `None` where that is not known.
    pub lag: Option<u64>,
    /// How long ago it answered the leader last; `None` if it never has.
    pub heard_ms_ago: Option<u64>,
}

/// A node as it sees itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeView {
    /// Its id.
    pub node: NodeId,
    /// Its name.
    pub name: NodeName,
    /// Its cluster, once it is in one.
    pub cluster: Option<ClusterId>,
    /// The leader's name, as far as this node knows.
    pub leader: Option<NodeName>,
    /// The last entry in its state machine.
    pub applied_index: u64,
    /// A hash of the state machine; equal states have equal hashes.
    pub state_hash: u64,
    /// The entry that the hash includes last.
    pub hashed_index: u64,
    /// Whether it has a leader, is a member, and has caught up.
    pub is_ready: bool,
}

pub(crate) fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    // Into memory, and none of these types can refuse.
    postcard::to_stdvec(message).unwrap_or_default()
}

pub(crate) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    postcard::from_bytes(bytes)
        .map_err(|error| format!("the message makes no sense: {error}; the nodes may run different versions"))
}
