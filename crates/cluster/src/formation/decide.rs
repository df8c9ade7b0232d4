//! What a node does when it starts.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Phase, Voter};
use crate::names::{ClusterId, NodeId};

/// What a node does after its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on from the disk, whatever the flags say. Raft's log knows the members.
    Restart(ClusterId),
    /// Propose a cluster, and invite the others.
    Propose,
    /// Wait to be invited, and ask meanwhile whether there is a cluster to join.
    AwaitInvite,
    /// Join this cluster, and no other.
    Join(ClusterId),
    /// Nothing: somebody has to decide.
    Refuse(Refusal),
}

/// Why a node does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No node is expected.
    NobodyExpected,
    /// The ledger names a cluster, and this node was in another.
    OtherCluster {
        /// What the ledger says.
        formed: Formed,
        /// What the disk says.
        own: ClusterId,
    },
    /// The node was told to give up a cluster that lives.
    StillRuns {
        /// The cluster.
        cluster: ClusterId,
        /// Who says so.
        peer: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NobodyExpected => f.write_str("no node is expected: expect at least 1"),
            Refusal::OtherCluster { formed, own } => write!(
                f,
                "the ledger says that cluster {} was formed on {}, but this data directory belongs to cluster {own}: check which ledger \
                 and which directory this node should have",
                formed.cluster, formed.time
            ),
            Refusal::StillRuns { cluster, peer } => write!(
                f,
                "cluster {cluster} still runs: {peer} is in it and has a leader; stop all its nodes before any of them starts with \
                 --force-new-cluster, or start this node without it to join them"
            ),
        }
    }
}

/// What is known of the bootstrap ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ledger {
    /// There is none.
    Unused,
    /// It has no record: no cluster was formed with it.
    Empty,
    /// A cluster was formed.
    Formed(Formed),
}

/// The record of a ledger: written once, and never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Formed {
    /// The cluster.
    pub cluster: ClusterId,
    /// Its first voters.
    pub voters: Vec<Voter>,
    /// When, for people.
    pub time: String,
}

impl Formed {
    /// Whether this node wrote the record, and did not come to bind itself.
    fn is_by(&self, node: NodeId, phase: &Phase) -> bool {
        let proposed = matches!(phase, Phase::Unbound { consent: Some(own) } if own.cluster == self.cluster);
        proposed && self.voters.iter().any(|voter| voter.node == node)
    }
}

/// What to do, from what the disk and the ledger say, and whether this node is the seed of `expected` nodes.
pub fn decide(node: NodeId, phase: &Phase, is_seed: bool, expected: usize, ledger: &Ledger) -> Decision {
    match (phase, ledger) {
        (Phase::Bound { cluster, .. }, _) => Decision::Restart(*cluster),
        (Phase::Removed { cluster }, Ledger::Formed(formed)) if formed.cluster != *cluster => {
            Decision::Refuse(Refusal::OtherCluster { formed: formed.clone(), own: *cluster })
        }
        (Phase::Removed { cluster }, _) => Decision::Join(*cluster),
        (Phase::Unbound { .. }, _) if expected == 0 => Decision::Refuse(Refusal::NobodyExpected),
        (Phase::Unbound { .. }, Ledger::Formed(formed)) if is_seed && formed.is_by(node, phase) => {
            Decision::Propose
        }
        (Phase::Unbound { .. }, Ledger::Formed(formed)) => Decision::Join(formed.cluster),
        (Phase::Unbound { .. }, _) if is_seed => Decision::Propose,
        (Phase::Unbound { .. }, _) => Decision::AwaitInvite,
    }
}
