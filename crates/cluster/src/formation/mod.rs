//! How a cluster comes into being, once: the decision at a node's start, invitations, and consent. Pure.
//!
//! Silence is never evidence here. Every step follows from what this node's own disk says, or from an answer that somebody gave.
//!
//! ```text
//!   the seed                                        every other node
//!   Propose: draws a cluster id, writes it down
//!     │  Invitation (round, cluster) ─────────────▶  consents: writes it down, then answers with its node id
//!     │  ◀───────────────────────────── Consented    (or: Higher, AlreadyIn)
//!   all have consented:
//!   binds itself, writes down the voters
//!     │  first frame of the cluster ──────────────▶  binds itself: writes that down, then answers
//!     │  ◀───────────────────────────────── bound
//!   all are bound: Raft begins
//!     ▼
//!   leads, or votes for whoever does
//! ```
//!
//! **Why there is never a second cluster.** Invitations are ordered by round, then by cluster id. Consent only moves upwards, and a node binds
//! itself to the cluster that it consented to last, once and for good. Raft begins when all voters are bound. Take two clusters of
//! the same names that both began, and let D be the one whose seed bound itself later. Each voter of D consented before that moment,
//! and bound itself after it. So at that moment every name had a disk that was bound to nothing. A disk that was bound to the other cluster
//! by then is lost, or its name has two. `docs/formation.md` has the whole argument.
//!
//! Leaves to others: carrying messages, writing the [`Phase`] to disk before anything is answered, and Raft itself.

mod binding;
mod decide;
mod giving_up;
mod proposal;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use binding::Binding;
pub use decide::{Decision, Formed, Ledger, Refusal, decide};
pub use giving_up::give_up;
pub use proposal::{Progress, Proposal};

use crate::names::{ClusterId, NodeId, NodeName};

/// What a data directory says about clusters. It is on disk before anybody is answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// In no cluster.
    Unbound {
        /// The highest invitation that this node agreed to, its own included.
        consent: Option<Invitation>,
    },
    /// In this cluster, for good.
    Bound {
        /// The cluster.
        cluster: ClusterId,
        /// The voters to begin with, at the node that invited them. Raft's log has them afterwards, and is what counts.
        initial: Option<Vec<Voter>>,
    },
    /// Removed from this cluster, and back with another node id: free to join this cluster again, and no other.
    Removed {
        /// The cluster.
        cluster: ClusterId,
    },
}

impl Phase {
    /// What an empty data directory says.
    pub const FRESH: Phase = Phase::Unbound { consent: None };

    /// The cluster that this node belongs to, or belonged to.
    pub fn cluster(&self) -> Option<ClusterId> {
        match self {
            Phase::Unbound { .. } => None,
            Phase::Bound { cluster, .. } | Phase::Removed { cluster } => Some(*cluster),
        }
    }

    /// Somebody invites this node.
    ///
    /// The caller writes the new phase to disk, if there is one, before it answers.
    #[must_use]
    pub fn invited(&self, invitation: Invitation) -> (Option<Phase>, InviteAnswer) {
        let consent = match self {
            Phase::Bound { cluster, .. } | Phase::Removed { cluster } => {
                return (None, InviteAnswer::AlreadyIn(*cluster));
            }
            Phase::Unbound { consent } => *consent,
        };
        match consent {
            Some(higher) if higher > invitation => (None, InviteAnswer::Higher(higher.round)),
            Some(same) if same == invitation => (None, InviteAnswer::Consented),
            _ => (Some(Phase::Unbound { consent: Some(invitation) }), InviteAnswer::Consented),
        }
    }

    /// A frame of that cluster arrives. The first one binds this node, if it consented to that cluster last.
    ///
    /// The caller writes the new phase to disk, if there is one, before it answers or lets Raft see the frame.
    ///
    /// # Errors
    /// When this node takes no part in that cluster.
    pub fn frame_of(&self, cluster: ClusterId) -> Result<Option<Phase>, NotInCluster> {
        match self {
            Phase::Bound { cluster: own, .. } if *own == cluster => Ok(None),
            Phase::Unbound { consent: Some(consent) } if consent.cluster == cluster => {
                Ok(Some(Phase::Bound { cluster, initial: None }))
            }
            _ => Err(NotInCluster { asked: cluster, own: self.cluster() }),
        }
    }

    /// A cluster has added this node, at its own request. Only what a majority of that cluster has committed counts as such an answer.
    ///
    /// # Errors
    /// When this node is in another cluster, or was.
    pub fn joined(&self, cluster: ClusterId) -> Result<Option<Phase>, NotInCluster> {
        match self {
            Phase::Bound { cluster: own, .. } if *own == cluster => Ok(None),
            Phase::Removed { cluster: own } if *own != cluster => {
                Err(NotInCluster { asked: cluster, own: Some(*own) })
            }
            Phase::Bound { cluster: own, .. } => Err(NotInCluster { asked: cluster, own: Some(*own) }),
            Phase::Unbound { .. } | Phase::Removed { .. } => {
                Ok(Some(Phase::Bound { cluster, initial: None }))
            }
        }
    }

    /// This node proposed a cluster, and drops the proposal because somebody is in one already. It goes on with another node id, and with
    /// whatever it consented to last. `None` where it is in a cluster itself by now.
    #[must_use]
    pub fn dropped(&self) -> Option<Phase> {
        match self {
            Phase::Unbound { .. } => Some(self.clone()),
            Phase::Bound { .. } | Phase::Removed { .. } => None,
        }
    }

    /// This node is no longer a member of its cluster. It keeps the cluster id: a wiped seed and two removed members must not form
    /// another cluster.
    #[must_use]
    pub fn removed(&self) -> Option<Phase> {
        match self {
            Phase::Bound { cluster, .. } => Some(Phase::Removed { cluster: *cluster }),
            Phase::Unbound { .. } | Phase::Removed { .. } => None,
        }
    }
}

/// A proposal to form a cluster. The order of rounds, then of cluster ids, decides between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Invitation {
    /// Higher than every round that the seed has heard of.
    pub round: u64,
    /// The cluster that it is for.
    pub cluster: ClusterId,
}

impl fmt::Display for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cluster {}, round {}", self.cluster, self.round)
    }
}

/// What an invited node answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum InviteAnswer {
    /// It has written down its consent.
    Consented,
    /// It has consented to an invitation of this round, which is higher.
    Higher(u64),
    /// It belongs to this cluster, or belonged to it.
    AlreadyIn(ClusterId),
}

/// One of the first voters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Voter {
    /// Its node id, as it answered.
    pub node: NodeId,
    /// Its name.
    pub name: NodeName,
}

/// A frame or an answer of a cluster that this node takes no part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotInCluster {
    /// The cluster of the frame.
    pub asked: ClusterId,
    /// The cluster of this node, if it is in one.
    pub own: Option<ClusterId>,
}

impl fmt::Display for NotInCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.own {
            Some(own) => write!(f, "this node belongs to cluster {own}, not to {}", self.asked),
            None => write!(f, "this node has not consented to cluster {}", self.asked),
        }
    }
}

impl std::error::Error for NotInCluster {}

#[cfg(test)]
mod tests;
