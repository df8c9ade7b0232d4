//! The members of a cluster, as its committed log has them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::{NodeId, NodeName};

/// A member: who it is, and where it said that it is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Member {
    /// Its node id.
    pub node: NodeId,
    /// Its name.
    pub name: NodeName,
    /// `HOST:PORT`, as it advertised itself when it was added. A resolver that knows the name better takes precedence.
    pub address: String,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} (node {})", self.name, self.address, self.node)
    }
}

/// Whether a member counts towards a majority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It votes.
    Voter,
    /// It receives the log, and does not vote.
    Learner,
}

impl Role {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Voter => "voter",
            Role::Learner => "learner",
        }
    }
}

/// The members at one point of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// The log index of the entry that says so: a change is decided on one configuration, and refused if there is another by then.
    pub index: u64,
    /// The members, by node id.
    pub members: Vec<(Member, Role)>,
}

impl Configuration {
    /// The member of this id.
    pub fn member(&self, node: NodeId) -> Option<&(Member, Role)> {
        self.members.iter().find(|(member, _)| member.node == node)
    }

    /// The members of this name: one, or two while one takes the place of the other.
    pub fn named<'a>(&'a self, name: &'a NodeName) -> impl Iterator<Item = &'a (Member, Role)> {
        self.members.iter().filter(move |(member, _)| member.name == *name)
    }

    /// Those who vote.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|(_, role)| *role == Role::Voter).map(|(member, _)| member)
    }
}
