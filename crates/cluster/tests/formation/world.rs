//! The world that is explored: disks, the processes that use them, what they have sent, and the clusters that came of it.
//!
//! A cut is a message that does not arrive. No message has to arrive, and none is ever used up: what was sent once may arrive at any later
//! time, often or never. So the world needs no list of cuts, and `sent` and `consents` only grow.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use bellwether_cluster::formation::{Binding, Invitation, Ledger, Phase, Proposal, Voter};
use bellwether_cluster::{ClusterId, NodeId, NodeName};

/// The most nodes of any world here.
pub(crate) const MOST: usize = 5;

/// Files of one disk, or of one life of it: the name's ordinal and a number.
pub(crate) type Files = u16;

/// How many files one name may have had: more than any bound allows.
const FILES_OF_A_NAME: Files = 100;

/// A name by its ordinal: 2 is `n-2`.
pub(crate) type Ordinal = u8;

static NAMES: LazyLock<Vec<NodeName>> =
    LazyLock::new(|| (0..MOST).map(|ordinal| NodeName::new(format!("n-{ordinal}")).unwrap()).collect());

pub(crate) fn name(ordinal: Ordinal) -> &'static NodeName {
    &NAMES[usize::from(ordinal)]
}

/// What the world is like, and how much may go wrong in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) nodes: u8,
    /// Nodes that take themselves for the seed: the first so many.
    pub(crate) seeds: u8,
    pub(crate) has_ledger: bool,
    /// Proposals that are begun, by all nodes together.
    pub(crate) proposals: u8,
    /// Disks that are lost. The node comes back with an empty one.
    pub(crate) wipes: u8,
    /// Nodes that get a second process with an empty disk, while the first one runs on.
    pub(crate) replacements: u8,
    /// Members that are removed.
    pub(crate) removals: u8,
    /// Times that a member which was removed, or whose place another took, starts over with another node id.
    pub(crate) returns: u8,
}

impl Bounds {
    pub(crate) fn names(&self) -> impl Iterator<Item = Ordinal> + use<> {
        0..self.nodes
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bounds { nodes, seeds, proposals, wipes, replacements, removals, returns, .. } = self;
        let ledger = if self.has_ledger { "with" } else { "without" };
        write!(
            f,
            "{nodes} nodes, seeds {seeds}, {ledger} a ledger; at most: proposals {proposals}, wipes {wipes}, replacements \
             {replacements}, removals {removals}, returns {returns}"
        )
    }
}

/// How much was done and went wrong so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Used {
    pub(crate) proposals: u8,
    pub(crate) wipes: u8,
    pub(crate) replacements: u8,
    pub(crate) removals: u8,
    pub(crate) returns: u8,
}

/// A disk, and the process that uses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) name: Ordinal,
    /// Whether a process with another disk has taken over the name. This one may be cut off, or not.
    pub(crate) is_replaced: bool,
    /// On disk: who it is and what it knows of clusters.
    pub(crate) id: NodeId,
    pub(crate) phase: Arc<Phase>,
    /// For the invariants: which files these are. An empty disk has others, and so has a node that started over.
    pub(crate) files: Files,
    /// On disk, in Raft's files: the cluster under which it voted or accepted an entry.
    pub(crate) raft: Option<ClusterId>,
    /// Not on disk, for the invariants: the first cluster that this disk was bound to.
    pub(crate) belonged: Option<ClusterId>,
    /// In memory.
    pub(crate) proposal: Option<Arc<Proposal>>,
    pub(crate) binding: Option<Arc<Binding>>,
}

impl Node {
    pub(crate) fn fresh(name: Ordinal, id: NodeId, files: Files) -> Node {
        let phase = Arc::new(Phase::FRESH);
        Node {
            name,
            is_replaced: false,
            id,
            phase,
            files,
            raft: None,
            belonged: None,
            proposal: None,
            binding: None,
        }
    }

    pub(crate) fn voter(&self) -> Voter {
        Voter { node: self.id, name: name(self.name).clone() }
    }

    pub(crate) fn takes_part_in(&self, cluster: ClusterId) -> bool {
        self.raft == Some(cluster)
    }
}

/// An invitation that a seed has sent to everybody.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sent {
    pub(crate) invitation: Invitation,
    pub(crate) by: Ordinal,
    pub(crate) node: NodeId,
}

/// The answer of a node that consents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Consent {
    pub(crate) invitation: Invitation,
    pub(crate) to: Ordinal,
    pub(crate) from: Ordinal,
    pub(crate) node: NodeId,
}

/// A cluster whose seed has bound itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cluster {
    pub(crate) id: ClusterId,
    pub(crate) initial: Vec<NodeId>,
    /// Whether Raft has begun.
    pub(crate) has_begun: bool,
    /// The clusters before it that had a disk left when its seed bound itself.
    pub(crate) beside: Vec<ClusterId>,
    /// As its log has them: Raft itself is taken to be right.
    pub(crate) voters: Vec<NodeId>,
    pub(crate) learners: Vec<NodeId>,
    /// All that were ever sent a frame.
    pub(crate) addressed: Vec<NodeId>,
    /// Whether it could acknowledge a write, at any time so far.
    pub(crate) has_acknowledged: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) nodes: Vec<Node>,
    pub(crate) sent: Vec<Sent>,
    pub(crate) consents: Vec<Consent>,
    pub(crate) clusters: Vec<Cluster>,
    /// A cluster has committed that this node is a member, and tells it so.
    pub(crate) added: Vec<(ClusterId, NodeId)>,
    /// Under which cluster a node id has taken part, and where it wrote that down.
    pub(crate) took_part: BTreeMap<NodeId, (ClusterId, Files)>,
    pub(crate) record: Option<(ClusterId, NodeId)>,
    pub(crate) used: Used,
    /// How many disks a name has had.
    pub(crate) disks: [u8; MOST],
    /// Names that have had two processes at a time, one bit each.
    pub(crate) doubled: u8,
}

/// Whose node id it is.
pub(crate) fn name_of(id: NodeId) -> Ordinal {
    (id.number() / u64::from(FILES_OF_A_NAME)) as Ordinal
}

impl World {
    pub(crate) fn new(bounds: &Bounds) -> World {
        let mut world = World {
            nodes: Vec::new(),
            sent: Vec::new(),
            consents: Vec::new(),
            clusters: Vec::new(),
            added: Vec::new(),
            took_part: BTreeMap::new(),
            record: None,
            used: Used::default(),
            disks: [0; MOST],
            doubled: 0,
        };
        for name in bounds.names() {
            let (id, files) = world.draw_node_id(name);
            world.nodes.push(Node::fresh(name, id, files));
        }
        world
    }

    /// Numbered by name, so that the order in which disks are lost makes no difference between two worlds.
    pub(crate) fn draw_node_id(&mut self, name: Ordinal) -> (NodeId, Files) {
        let number = &mut self.disks[usize::from(name)];
        *number += 1;
        let files = Files::from(name) * FILES_OF_A_NAME + Files::from(*number);
        assert!(Files::from(*number) < FILES_OF_A_NAME, "two names would share a node id");
        (NodeId::from_random(u64::from(files)), files)
    }

    pub(crate) fn ledger(&self, bounds: &Bounds) -> Ledger {
        use bellwether_cluster::formation::Formed;
        match self.record {
            _ if !bounds.has_ledger => Ledger::Unused,
            None => Ledger::Empty,
            Some((cluster, node)) => {
                let by = Voter { node, name: name(name_of(node)).clone() };
                Ledger::Formed(Formed { cluster, voters: vec![by], time: "2026-01-01".into() })
            }
        }
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    pub(crate) fn cluster(&self, id: ClusterId) -> Option<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.id == id)
    }

    /// Whether a majority of its voters have their disks and take part: some cut of the network lets them acknowledge a write.
    pub(crate) fn can_acknowledge(&self, cluster: &Cluster) -> bool {
        self.has_majority(cluster, |_| true)
    }

    /// The same, where every name leads to its last disk only.
    pub(crate) fn can_acknowledge_by_name(&self, cluster: &Cluster) -> bool {
        self.has_majority(cluster, |node| !node.is_replaced)
    }

    fn has_majority(&self, cluster: &Cluster, counts: impl Fn(&Node) -> bool) -> bool {
        let takes_part = |id: &&NodeId| {
            self.nodes.iter().any(|node| node.id == **id && node.takes_part_in(cluster.id) && counts(node))
        };
        cluster.voters.iter().filter(takes_part).count() * 2 > cluster.voters.len()
    }

    /// Whether every disk that belonged to the cluster is wiped, or shares its name with another.
    pub(crate) fn has_lost_every_disk(&self, cluster: ClusterId) -> bool {
        let is_there = |node: &Node| node.belonged == Some(cluster) && self.doubled & (1 << node.name) == 0;
        !self.nodes.iter().any(is_there)
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}
