//! What the world is like after a step.

use std::sync::Arc;

use bellwether_cluster::formation::{Binding, InviteAnswer, Phase, Proposal};
use bellwether_cluster::{ClusterId, NodeId};

use crate::invariants::{self, Broken};
use crate::rules::Bug;
use crate::steps::{Play, Step};
use crate::world::{Cluster, Consent, Files, Node, Sent, World, name, name_of};

impl Play {
    /// The world after the step, or what is broken in it.
    pub(crate) fn after(&self, world: &World, step: Step) -> Result<World, Broken> {
        let mut next = world.clone();
        self.take(&mut next, step)?;
        settle(&mut next)?;
        self.forget(&mut next);
        invariants::check(&mut next, &self.bounds)?;
        Ok(next)
    }

    fn take(&self, world: &mut World, step: Step) -> Result<(), Broken> {
        match step {
            Step::Propose { node, is_high, is_above } => self.propose(world, node, is_high, is_above)?,
            Step::Crash { node } => {
                let it = &mut world.nodes[usize::from(node)];
                (it.proposal, it.binding) = (None, None);
            }
            Step::Restart { node } => {
                let it = &mut world.nodes[usize::from(node)];
                it.binding = Binding::new(it.id, &it.phase).map(Arc::new);
            }
            Step::Invited { sent, node } => {
                let invitation = world.sent[usize::from(sent)].invitation;
                match self.rules.invited(&world.nodes[usize::from(node)].phase, invitation) {
                    (Some(phase), _) => invariants::write(world, node, phase)?,
                    (None, _) => consents(world, sent, node)?,
                }
            }
            Step::AnsweredEarly { sent, node } => consents(world, sent, node)?,
            Step::Consented { consent, seed } => {
                let Consent { invitation, from, node, .. } = world.consents[usize::from(consent)].clone();
                let proposal = Arc::make_mut(world.nodes[usize::from(seed)].proposal.as_mut().unwrap());
                let invitation = self.rules.counted(proposal, invitation);
                proposal.answered(invitation, name(from), node, InviteAnswer::Consented);
            }
            Step::StartOver { node } => {
                let phase = self.rules.dropped(&world.nodes[usize::from(node)]).unwrap();
                self.start_over(world, node, phase)?;
            }
            Step::Record { sent } => {
                let sent = &world.sent[usize::from(sent)];
                world.record = Some((sent.invitation.cluster, sent.node));
            }
            Step::Bind { seed } => self.bind(world, seed)?,
            Step::Begin { seed } => {
                let id = world.nodes[usize::from(seed)].binding.take().unwrap().cluster();
                world.clusters.iter_mut().find(|cluster| cluster.id == id).unwrap().has_begun = true;
            }
            Step::Frame { cluster, node } => {
                let id = world.clusters[usize::from(cluster)].id;
                if let Ok(Some(phase)) = self.rules.frame_of(&world.nodes[usize::from(node)].phase, id) {
                    invariants::bind(&world.nodes[usize::from(node)], id)?;
                    invariants::write(world, node, phase)?;
                }
            }
            Step::BoundEarly { cluster, node } => {
                let id = world.clusters[usize::from(cluster)].id;
                let node_id = world.nodes[usize::from(node)].id;
                hears_that_it_is_bound(world, id, node_id);
                invariants::take_part(world, node, id)?;
            }
            Step::Add { cluster, node } => {
                let id = world.nodes[usize::from(node)].id;
                let cluster = &mut world.clusters[usize::from(cluster)];
                if !cluster.voters.contains(&id) {
                    insert(&mut cluster.learners, id);
                    insert(&mut cluster.addressed, id);
                }
                let added = (cluster.id, id);
                insert(&mut world.added, added);
            }
            Step::Joined { added, node } => {
                let (cluster, _) = world.added[usize::from(added)];
                if let Ok(Some(phase)) = self.rules.joined(&world.nodes[usize::from(node)].phase, cluster) {
                    invariants::write(world, node, phase)?;
                }
            }
            Step::Promote { cluster, learner } => {
                let cluster = &mut world.clusters[usize::from(cluster)];
                let id = cluster.learners.remove(usize::from(learner));
                // By a majority of the old configuration, in one change.
                cluster.voters.retain(|voter| name_of(*voter) != name_of(id));
                insert(&mut cluster.voters, id);
            }
            Step::Remove { cluster, voter } => {
                world.clusters[usize::from(cluster)].voters.remove(usize::from(voter));
                world.used.removals += 1;
            }
            Step::Return { node } => {
                let phase = self.rules.removed(&world.nodes[usize::from(node)].phase).unwrap();
                world.used.returns += 1;
                self.start_over(world, node, phase)?;
            }
            Step::Wipe { node } => {
                let (id, files) = self.empty_disk(world, node);
                let it = &mut world.nodes[usize::from(node)];
                *it = Node { is_replaced: it.is_replaced, ..Node::fresh(it.name, id, files) };
                world.used.wipes += 1;
            }
            Step::Replace { node } => {
                let (id, files) = self.empty_disk(world, node);
                let it = &mut world.nodes[usize::from(node)];
                it.is_replaced = true;
                let of = it.name;
                world.doubled |= 1 << of;
                world.nodes.push(Node::fresh(of, id, files));
                world.used.replacements += 1;
            }
        }
        Ok(())
    }

    fn propose(&self, world: &mut World, node: u8, is_high: bool, is_above: bool) -> Result<(), Broken> {
        let drawn = self.rules.cluster_id(world, is_high);
        let highest = world.sent.iter().map(|sent| sent.invitation.round).max().unwrap_or(0);
        let is_own_record = |id| world.record.is_some_and(|(_, by)| by == id);
        let it = &world.nodes[usize::from(node)];
        if is_own_record(it.id) && !self.rules.has(Bug::LedgerIgnored) {
            let proposal = Proposal::recorded(&it.phase, it.voter()).map(Arc::new);
            world.nodes[usize::from(node)].proposal = proposal;
            return Ok(());
        }
        let above = if is_above { highest } else { 0 };
        let others = self.rules.others(&self.bounds);
        if let Some((phase, proposal)) = Proposal::new(&it.phase, it.voter(), others, drawn, above) {
            world.sent.push(Sent { invitation: proposal.invitation(), by: it.name, node: it.id });
            world.nodes[usize::from(node)].proposal = Some(Arc::new(proposal));
            world.used.proposals += 1;
            invariants::write(world, node, phase)?;
        }
        Ok(())
    }

    fn bind(&self, world: &mut World, seed: u8) -> Result<(), Broken> {
        let it = &world.nodes[usize::from(seed)];
        let phase = self.rules.bound(world, it).unwrap();
        let Phase::Bound { cluster, initial: Some(voters) } = &phase else { unreachable!("it is bound") };
        let (cluster, initial): (ClusterId, Vec<NodeId>) =
            (*cluster, voters.iter().map(|voter| voter.node).collect());
        invariants::bind(it, cluster)?;
        invariants::begin(world, seed, cluster, initial)?;
        world.nodes[usize::from(seed)].proposal = None;
        invariants::write(world, seed, phase)?;
        self.take(world, Step::Restart { node: seed })
    }

    fn start_over(&self, world: &mut World, node: u8, phase: Phase) -> Result<(), Broken> {
        let (id, files) = world.draw_node_id(world.nodes[usize::from(node)].name);
        let it = &mut world.nodes[usize::from(node)];
        (it.id, it.files, it.raft, it.proposal, it.binding) = (id, files, None, None, None);
        invariants::write(world, node, phase)
    }

    fn empty_disk(&self, world: &mut World, node: u8) -> (NodeId, Files) {
        let (name, old) = (world.nodes[usize::from(node)].name, world.nodes[usize::from(node)].id);
        let (id, files) = world.draw_node_id(name);
        (if self.rules.has(Bug::NodeIdReused) { old } else { id }, files)
    }

    /// Leaves out what can have no effect any more, so that worlds which differ in it alone are one: consents to proposals that were
    /// dropped, and what is said to or known of node ids that no disk has.
    fn forget(&self, world: &mut World) {
        let mut consents = std::mem::take(&mut world.consents);
        let counts = |consent: &Consent| {
            let is_its = |sent: &&Sent| sent.invitation == consent.invitation && sent.by == consent.to;
            world.sent.iter().find(is_its).is_some_and(|sent| self.is_of_use(world, sent))
        };
        consents.retain(counts);
        world.consents = consents;
        let nodes = &world.nodes;
        let exists = |id: &NodeId| nodes.iter().any(|node| node.id == *id);
        world.added.retain(|(_, id)| exists(id));
        world.took_part.retain(|id, _| exists(id));
        for cluster in &mut world.clusters {
            cluster.addressed.retain(exists);
            cluster.learners.retain(exists);
        }
    }
}

/// What may as well happen at once, because it can only make more steps possible: the seed hears that a voter is bound, and a node that is
/// bound to a cluster that has begun takes part in it.
fn settle(world: &mut World) -> Result<(), Broken> {
    for index in 0..world.nodes.len() {
        let node = &world.nodes[index];
        let Phase::Bound { cluster, .. } = &*node.phase else { continue };
        let (cluster, id) = (*cluster, node.id);
        let takes_part = node.takes_part_in(cluster);
        hears_that_it_is_bound(world, cluster, id);
        let is_member = |it: &Cluster| it.has_begun && it.addressed.contains(&id);
        if !takes_part && world.cluster(cluster).is_some_and(is_member) {
            invariants::take_part(world, index as u8, cluster)?;
        }
    }
    Ok(())
}

fn hears_that_it_is_bound(world: &mut World, cluster: ClusterId, id: NodeId) {
    let is_waited_for = |seed: &&mut Node| {
        let binding = seed.binding.as_deref().filter(|binding| binding.cluster() == cluster);
        binding.is_some_and(|binding| binding.waiting().any(|voter| voter.node == id))
    };
    for seed in world.nodes.iter_mut().filter(is_waited_for) {
        Arc::make_mut(seed.binding.as_mut().unwrap()).is_bound(id);
    }
}

pub(crate) fn consent(sent: &Sent, node: &Node) -> Consent {
    Consent { invitation: sent.invitation, to: sent.by, from: node.name, node: node.id }
}

fn consents(world: &mut World, sent: u8, node: u8) -> Result<(), Broken> {
    let (sent, node) = (&world.sent[usize::from(sent)], &world.nodes[usize::from(node)]);
    invariants::answer(node, sent.invitation)?;
    let consent = consent(sent, node);
    insert(&mut world.consents, consent);
    Ok(())
}

/// Sorted, so that the order of two events makes no difference between two worlds.
fn insert<T: Ord>(list: &mut Vec<T>, it: T) {
    if let Err(place) = list.binary_search(&it) {
        list.insert(place, it);
    }
}
