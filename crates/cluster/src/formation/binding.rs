//! The last step before Raft begins: every voter binds itself.

use std::collections::BTreeSet;

use super::{Phase, Voter};
use crate::names::{ClusterId, NodeId};

/// Who is bound to the cluster that a seed is about to begin. Kept in memory: after a restart the seed asks everybody again.
///
/// A consent says what a disk promised at one time, and since then it may have gone to a higher invitation, or be lost. A cluster that
/// began with a majority of such voters could begin beside another one. A cluster that begins when *all* of them are bound
/// has every name's disk for itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binding {
    cluster: ClusterId,
    voters: Vec<Voter>,
    waiting: BTreeSet<NodeId>,
}

impl Binding {
    /// What the seed has to do before it begins, while Raft has nothing on disk. `None` at every other node.
    pub fn new(node: NodeId, phase: &Phase) -> Option<Binding> {
        let Phase::Bound { cluster, initial: Some(voters) } = phase else { return None };
        let others = voters.iter().map(|voter| voter.node).filter(|voter| *voter != node);
        Some(Binding { cluster: *cluster, voters: voters.clone(), waiting: others.collect() })
    }

    /// The cluster that is about to begin. Its voters are sent a frame of it until they answer; [`Phase::frame_of`] binds them.
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// The voter of this id has written down that it is bound to this cluster.
    pub fn is_bound(&mut self, node: NodeId) {
        self.waiting.remove(&node);
    }

    /// Those who have not answered. One whose name answers with another node id has lost its disk, and never will.
    pub fn waiting(&self) -> impl Iterator<Item = &Voter> {
        self.voters.iter().filter(|voter| self.waiting.contains(&voter.node))
    }

    /// The voters to begin with, when all of them are bound.
    pub fn complete(&self) -> Option<&[Voter]> {
        self.waiting.is_empty().then_some(&*self.voters)
    }
}
