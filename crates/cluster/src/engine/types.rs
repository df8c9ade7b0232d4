//! The types that openraft is instantiated with. None of them leaves the engine.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::member::{Configuration, Member, Role};
use crate::names::{NodeId, NodeName};

openraft::declare_raft_types!(
    /// Commands and answers are bytes; nodes are told apart by the number of their [`NodeId`].
    pub(super) Types:
        D = Command,
        R = Answer,
        NodeId = u64,
        Node = RaftNode,
);

pub(super) type Raft = openraft::Raft<Types, super::machine::Machine>;
pub(super) type Entry = openraft::type_config::alias::EntryOf<Types>;
pub(super) type LogId = openraft::type_config::alias::LogIdOf<Types>;
pub(super) type Vote = openraft::type_config::alias::VoteOf<Types>;
pub(super) type Membership = openraft::Membership<u64, RaftNode>;
pub(super) type StoredMembership = openraft::type_config::alias::StoredMembershipOf<Types>;
pub(super) type SnapshotMeta = openraft::type_config::alias::SnapshotMetaOf<Types>;
pub(super) type Snapshot = openraft::type_config::alias::SnapshotOf<Types, SnapshotData>;
/// What [`crate::StateMachine::snapshot`] returned. Shared, because it is written, sent and kept at the same time.
pub(super) type SnapshotData = Arc<Vec<u8>>;

/// What is agreed on.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Command {
    /// For the state machine.
    Apply(CommandBytes),
    /// The cluster was recovered by hand for that many times. In the log, so that every node that ever joins counts the same.
    Recovered(u32),
}

/// What a client proposed. Shared, because the log, the disk and every follower's connection use it at the same time.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct CommandBytes(pub(super) Arc<[u8]>);

impl From<Vec<u8>> for Command {
    fn from(bytes: Vec<u8>) -> Command {
        Command::Apply(CommandBytes(bytes.into()))
    }
}

/// What the state machine answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer(pub(super) Vec<u8>);

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Apply(CommandBytes(bytes)) => write!(f, "{} bytes", bytes.len()),
            Command::Recovered(generation) => write!(f, "recovered for the {generation}th time"),
        }
    }
}

impl Serialize for CommandBytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for CommandBytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<CommandBytes, D::Error> {
        struct Bytes;
        impl de::Visitor<'_> for Bytes {
            type Value = CommandBytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the bytes of a command")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<CommandBytes, E> {
                Ok(CommandBytes(bytes.into()))
            }
        }
        from.deserialize_bytes(Bytes)
    }
}

/// What the log says about a member, besides its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RaftNode {
    name: NodeName,
    address: String,
}

/// openraft's storage suite makes members out of numbers alone.
impl Default for RaftNode {
    fn default() -> RaftNode {
        let name = NodeName::new("unnamed").expect("letters are a name");
        RaftNode { name, address: String::new() }
    }
}

impl From<&Member> for RaftNode {
    fn from(member: &Member) -> RaftNode {
        RaftNode { name: member.name.clone(), address: member.address.clone() }
    }
}

impl RaftNode {
    pub(super) fn member(&self, id: u64) -> Member {
        Member { node: NodeId::from_random(id), name: self.name.clone(), address: self.address.clone() }
    }
}

/// As openraft takes members.
pub(super) fn nodes(members: &[Member]) -> BTreeMap<u64, RaftNode> {
    members.iter().map(|member| (member.node.number(), RaftNode::from(member))).collect()
}

/// As the rest of the crate sees members. While two configurations overlap, whoever votes in one of them is a voter.
pub(super) fn configuration(stored: &StoredMembership) -> Configuration {
    let voters: Vec<u64> = stored.voter_ids().collect();
    let role = |id: &u64| if voters.contains(id) { Role::Voter } else { Role::Learner };
    let members = stored.nodes().map(|(id, node)| (node.member(*id), role(id))).collect();
    Configuration { index: stored.log_id().as_ref().map_or(0, |id| id.index), members }
}
