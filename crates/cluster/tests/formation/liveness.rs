//! What becomes of a world in which nothing goes wrong any more: one process for each name, and every message arrives.
//!
//! The run is one of many that are fair: whoever is nearest to a cluster goes first. So a cluster that forms here can form, and two seeds
//! that propose against each other forever are not looked for. What does not form here is told by a predicate of the world that no step
//! without a person changes.

use bellwether_cluster::formation::{InviteAnswer, Ledger, Phase};
use bellwether_cluster::{ClusterId, NodeId};

use crate::steps::{Play, Step};
use crate::world::{Bounds, Cluster, Node, World};

/// How a world ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum End {
    /// One cluster, and every node votes in it.
    Formed,
    /// A cluster has begun, and has lost the disks of a majority.
    MajorityLost,
    /// A seed is bound to a cluster, and a voter of it lost its disk before it was bound.
    VoterGone,
    /// A seed is bound to a cluster, and a voter of it has consented to another proposal since.
    VoterConsentedElsewhere,
    /// Voters are bound to a cluster whose seed lost its disk before Raft began.
    SeedGone,
    /// Nodes are bound to two clusters, of which neither began.
    TwoUnfinished,
    /// A cluster runs, and a node is bound to another one that never began.
    BoundElsewhere,
    /// The ledger names a cluster whose seed lost its disk before Raft began.
    RecordedSeedGone,
    /// The ledger names a cluster that its seed has given up, for a proposal that it made later.
    RecordedTooLate,
    /// None of these: the exploration fails.
    Unexplained,
}

/// Far more than any run takes.
const MOST_STEPS: usize = 500;

/// Lets everything arrive, and says what comes of it.
pub(crate) fn end_of(play: &Play, world: &World) -> End {
    let mut world = only_last_processes(world);
    let play = Play { bounds: without_faults(&play.bounds, &world), ..*play };
    for _ in 0..MOST_STEPS {
        if is_formed(&play.bounds, &world) {
            return End::Formed;
        }
        let Some(step) = next(&play, &world) else { return explain(&play.bounds, &world) };
        world = play.after(&world, step).unwrap_or_else(|broken| panic!("{broken} after {step:?}"));
    }
    End::Unexplained
}

/// The world in which nothing went wrong, with its cluster.
pub(crate) fn formed(play: &Play) -> World {
    let mut world = World::new(&play.bounds);
    while !is_formed(&play.bounds, &world) {
        let step = next(play, &world).expect("nothing went wrong");
        world = play.after(&world, step).unwrap_or_else(|broken| panic!("{broken} after {step:?}"));
    }
    world
}

/// A process whose name another one has taken over has ended.
fn only_last_processes(world: &World) -> World {
    let mut world = world.clone();
    world.nodes.retain(|node| !node.is_replaced);
    world.nodes.sort_by_key(|node| node.name);
    world
}

fn without_faults(bounds: &Bounds, world: &World) -> Bounds {
    let returns = world.used.returns + 20;
    let proposals = world.used.proposals + 20;
    Bounds { proposals, returns, wipes: 0, replacements: 0, removals: 0, ..*bounds }
}

fn is_formed(bounds: &Bounds, world: &World) -> bool {
    let has_all = |cluster: &Cluster| {
        let votes = |node: &Node| cluster.voters.contains(&node.id) && node.takes_part_in(cluster.id);
        cluster.has_begun && world.can_acknowledge(cluster) && world.nodes.iter().all(votes)
    };
    world.nodes.len() == usize::from(bounds.nodes) && world.clusters.iter().any(has_all)
}

/// The step that a fair run takes next: what brings somebody nearer to a cluster first, and a new proposal last.
fn next(play: &Play, world: &World) -> Option<Step> {
    let steps = play.steps(world);
    let rank = |step: &Step| match *step {
        Step::Crash { node } => gives_up(world, node).then_some(1),
        Step::StartOver { node } => hears_of_a_cluster(world, node).then_some(2),
        Step::Record { sent } => {
            // A record that somebody gave up may arrive as well; that is another world.
            let is_current = |node: &Node| {
                let proposal = node.proposal.as_deref().map(|proposal| proposal.invitation());
                proposal == Some(world.sent[usize::from(sent)].invitation)
            };
            world.nodes.iter().any(is_current).then_some(3)
        }
        // The answer of a disk that is gone arrived long ago, or never.
        Step::Consented { consent, .. } => {
            world.node(world.consents[usize::from(consent)].node).is_some().then_some(0)
        }
        Step::Invited { sent, .. } => play.is_of_use(world, &world.sent[usize::from(sent)]).then_some(4),
        Step::Propose { is_high, is_above, node } => {
            let may_be_above = is_above || !is_below(world, node);
            (is_high && may_be_above && nobody_proposes(world)).then_some(5)
        }
        step => (!step.is_fault()).then_some(0),
    };
    steps
        .into_iter()
        .filter_map(|step| rank(&step).map(|rank| (rank, step)))
        .min_by_key(|(rank, _)| *rank)
        .map(|(_, step)| step)
}

/// Whether the process drops its proposal: the ledger has another, it has consented to another itself, or is bound, or somebody else has
/// consented to a higher one.
fn gives_up(world: &World, node: u8) -> bool {
    let node = &world.nodes[usize::from(node)];
    let Some(proposal) = node.proposal.as_deref() else { return false };
    let own = proposal.invitation();
    let is_refused = |other: &Node| matches!(other.phase.invited(own), (_, InviteAnswer::Higher(_)));
    let is_beaten = world.record.is_some_and(|(cluster, _)| cluster != own.cluster);
    is_beaten || *node.phase != Phase::Unbound { consent: Some(own) } || world.nodes.iter().any(is_refused)
}

fn hears_of_a_cluster(world: &World, node: u8) -> bool {
    let name = world.nodes[usize::from(node)].name;
    world.nodes.iter().any(|other| other.name != name && other.phase.cluster().is_some())
}

fn is_below(world: &World, node: u8) -> bool {
    let round = |node: &Node| match &*node.phase {
        Phase::Unbound { consent } => consent.map_or(0, |consent| consent.round),
        _ => 0,
    };
    let own = round(&world.nodes[usize::from(node)]);
    world.nodes.iter().any(|other| round(other) > own)
}

/// Nobody proposes, and nobody is in a cluster that a proposal would only run into.
fn nobody_proposes(world: &World) -> bool {
    world.nodes.iter().all(|node| node.proposal.is_none() && node.phase.cluster().is_none())
}

/// Why no cluster forms.
fn explain(bounds: &Bounds, world: &World) -> End {
    if let Ledger::Formed(formed) = world.ledger(bounds)
        && world.cluster(formed.cluster).is_none_or(|cluster| !cluster.has_begun)
    {
        let is_there = world.node(formed.voters[0].node).is_some();
        return if is_there { End::RecordedTooLate } else { End::RecordedSeedGone };
    }
    let is_held =
        |cluster: &&Cluster| world.nodes.iter().any(|node| node.phase.cluster() == Some(cluster.id));
    let is_on_record = |cluster: &&Cluster| world.record.is_some_and(|(id, _)| id == cluster.id);
    let held: Vec<&Cluster> = world.clusters.iter().filter(|it| is_held(it) || is_on_record(it)).collect();
    if held.iter().any(|cluster| cluster.has_begun) {
        let can_acknowledge = held.iter().any(|cluster| world.can_acknowledge(cluster));
        let is_unfinished = held.iter().any(|cluster| !cluster.has_begun);
        return match can_acknowledge {
            true if is_unfinished => End::BoundElsewhere,
            true => End::Unexplained,
            false => End::MajorityLost,
        };
    }
    match held[..] {
        [] => End::Unexplained,
        [cluster] => unfinished(world, cluster),
        [..] => End::TwoUnfinished,
    }
}

/// Why a cluster does not begin.
fn unfinished(world: &World, cluster: &Cluster) -> End {
    let is_there = |voter: &NodeId| world.node(*voter).is_some();
    match world.nodes.iter().any(|node| is_seed_of(node, cluster.id)) {
        false => End::SeedGone,
        true if cluster.initial.iter().all(is_there) => End::VoterConsentedElsewhere,
        true => End::VoterGone,
    }
}

fn is_seed_of(node: &Node, cluster: ClusterId) -> bool {
    matches!(&*node.phase, Phase::Bound { cluster: own, initial: Some(_) } if *own == cluster)
}
