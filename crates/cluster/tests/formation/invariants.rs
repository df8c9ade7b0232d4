//! What holds after every step.

use std::fmt;
use std::sync::Arc;

use bellwether_cluster::formation::{Invitation, Phase};
use bellwether_cluster::{ClusterId, NodeId};

use crate::world::{Bounds, Cluster, Node, World};

/// An invariant that does not hold, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Two clusters have acknowledged writes, and a disk of the first was there when the seed of the second bound itself.
    TwoClusters(ClusterId, ClusterId),
    /// Two clusters can acknowledge writes now, and no name leads to two disks.
    TwoMajorities(ClusterId, ClusterId),
    /// A node id has taken part in two clusters.
    TwoClustersOfOneNode(NodeId),
    /// A node id takes part with a disk that knows nothing of its earlier votes.
    ForgotItsVotes(NodeId),
    /// A consent has moved down.
    ConsentMovedDown(NodeId),
    /// A node has answered that it consents, and its disk does not say so.
    AnsweredAheadOfDisk(NodeId),
    /// A seed has bound itself to a cluster of which this voter has not answered that it consents.
    WithoutConsent(NodeId),
    /// A node is bound to a cluster that is not the one of its last consent, and that has not added it.
    BoundAgainstConsent(NodeId),
    /// A disk has forgotten its cluster.
    Unbound(NodeId),
    /// A cluster was begun with two sets of voters.
    TwoVoterSets(ClusterId),
    /// A second cluster in spite of the ledger.
    BesideTheLedger(ClusterId),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// After each step: notes who can acknowledge, and compares every two clusters.
pub(crate) fn check(world: &mut World, bounds: &Bounds) -> Result<(), Broken> {
    for index in 0..world.clusters.len() {
        world.clusters[index].has_acknowledged |= world.can_acknowledge(&world.clusters[index]);
    }
    for (index, one) in world.clusters.iter().enumerate() {
        for other in &world.clusters[index + 1..] {
            if world.can_acknowledge_by_name(one) && world.can_acknowledge_by_name(other) {
                return Err(Broken::TwoMajorities(one.id, other.id));
            }
            if one.has_acknowledged && other.has_acknowledged {
                if bounds.has_ledger {
                    return Err(Broken::BesideTheLedger(other.id));
                }
                if other.beside.contains(&one.id) {
                    return Err(Broken::TwoClusters(one.id, other.id));
                }
            }
        }
    }
    Ok(())
}

/// Writes a node's phase to its disk.
pub(crate) fn write(world: &mut World, node: u8, phase: Phase) -> Result<(), Broken> {
    let node = &mut world.nodes[usize::from(node)];
    if let (Phase::Unbound { consent: before }, Phase::Unbound { consent: after }) = (&*node.phase, &phase)
        && before > after
    {
        return Err(Broken::ConsentMovedDown(node.id));
    }
    if node.phase.cluster().is_some() && node.phase.cluster() != phase.cluster() {
        return Err(Broken::Unbound(node.id));
    }
    node.belonged = node.belonged.or(phase.cluster());
    node.phase = Arc::new(phase);
    Ok(())
}

/// A node votes, or accepts an entry.
pub(crate) fn take_part(world: &mut World, node: u8, cluster: ClusterId) -> Result<(), Broken> {
    let node = &mut world.nodes[usize::from(node)];
    node.raft = Some(cluster);
    node.belonged = node.belonged.or(Some(cluster));
    match *world.took_part.entry(node.id).or_insert((cluster, node.files)) {
        (other, _) if other != cluster => Err(Broken::TwoClustersOfOneNode(node.id)),
        (_, files) if files != node.files => Err(Broken::ForgotItsVotes(node.id)),
        _ => Ok(()),
    }
}

/// A node answers that it consents.
pub(crate) fn answer(node: &Node, to: Invitation) -> Result<(), Broken> {
    let is_on_disk = *node.phase == Phase::Unbound { consent: Some(to) };
    if is_on_disk { Ok(()) } else { Err(Broken::AnsweredAheadOfDisk(node.id)) }
}

/// A node is about to bind itself, as one of the first voters.
pub(crate) fn bind(node: &Node, to: ClusterId) -> Result<(), Broken> {
    let is_last = matches!(&*node.phase, Phase::Unbound { consent: Some(last) } if last.cluster == to);
    if is_last { Ok(()) } else { Err(Broken::BoundAgainstConsent(node.id)) }
}

/// A seed is about to bind itself to a cluster of these voters.
pub(crate) fn begin(
    world: &mut World,
    seed: u8,
    id: ClusterId,
    mut initial: Vec<NodeId>,
) -> Result<(), Broken> {
    initial.sort();
    if let Some(cluster) = world.cluster(id) {
        return if cluster.initial == initial { Ok(()) } else { Err(Broken::TwoVoterSets(id)) };
    }
    let seed = world.nodes[usize::from(seed)].id;
    let answered = |voter: &&NodeId| {
        **voter == seed || world.consents.iter().any(|it| it.node == **voter && it.invitation.cluster == id)
    };
    if let Some(silent) = initial.iter().find(|voter| !answered(voter)) {
        return Err(Broken::WithoutConsent(*silent));
    }
    let (voters, addressed) = (initial.clone(), initial.clone());
    let has_disk = |other: &ClusterId| !world.has_lost_every_disk(*other);
    let beside = world.clusters.iter().map(|cluster| cluster.id).filter(has_disk).collect();
    let (has_begun, has_acknowledged, learners) = (false, false, Vec::new());
    let cluster = Cluster { id, initial, has_begun, beside, voters, learners, addressed, has_acknowledged };
    world.clusters.push(cluster);
    Ok(())
}
