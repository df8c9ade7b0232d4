//! What can happen next.
//!
//! *Persist, then answer* is two steps: the first time a message arrives that changes a disk, the disk changes and nobody is answered, as
//! if the process had crashed in between. The answer goes out when the message arrives again. A refusal makes a seed drop its proposal,
//! which a crash does as well, at any time.

use bellwether_cluster::formation::{Binding, Decision, InviteAnswer, Phase};

use crate::effects::consent;
use crate::rules::{Bug, Rules};
use crate::world::{Bounds, Node, Sent, Used, World, name};

/// One step. Nodes, messages and clusters are positions in the lists of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A seed proposes a cluster: it writes down its own consent, and invites. The random id of the cluster is above all others or below;
    /// the round is above what the seed consented to, or above all that there were.
    Propose { node: u8, is_high: bool, is_above: bool },
    /// A process ends. It starts again from its disk.
    Crash { node: u8 },
    /// A seed that is bound goes on, from its disk, to bind the others.
    Restart { node: u8 },
    /// An invitation arrives.
    Invited { sent: u8, node: u8 },
    /// Only with a planted bug: an invitation is answered, and not yet written down.
    AnsweredEarly { sent: u8, node: u8 },
    /// A consent arrives at the seed.
    Consented { consent: u8, seed: u8 },
    /// The seed hears that somebody is in a cluster: it drops its proposal, and goes on with another node id.
    StartOver { node: u8 },
    /// The record of that proposal arrives at the ledger, which has none.
    Record { sent: u8 },
    /// All have consented: the seed binds itself.
    Bind { seed: u8 },
    /// All are bound: Raft begins.
    Begin { seed: u8 },
    /// A frame of a cluster arrives, which binds the node.
    Frame { cluster: u8, node: u8 },
    /// Only with a planted bug: the node answers and votes, and has not written down that it is bound.
    BoundEarly { cluster: u8, node: u8 },
    /// A cluster that can commit makes the node a learner.
    Add { cluster: u8, node: u8 },
    /// The node hears that it was added.
    Joined { added: u8, node: u8 },
    /// A cluster that can commit makes a learner a voter, in place of the voter of that name if there is one.
    Promote { cluster: u8, learner: u8 },
    /// A cluster that can commit removes a voter.
    Remove { cluster: u8, voter: u8 },
    /// A node that was removed starts over, with another node id.
    Return { node: u8 },
    /// A node loses its disk.
    Wipe { node: u8 },
    /// A second process with an empty disk takes over the name.
    Replace { node: u8 },
}

impl Step {
    /// Whether something goes wrong, or a person takes a member out.
    pub(crate) fn is_fault(self) -> bool {
        matches!(self, Step::Crash { .. } | Step::Wipe { .. } | Step::Replace { .. } | Step::Remove { .. })
    }
}

/// A world with the rules that hold in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Play {
    pub(crate) bounds: Bounds,
    pub(crate) rules: Rules,
}

impl Play {
    /// Every step that changes something.
    pub(crate) fn steps(&self, world: &World) -> Vec<Step> {
        let mut steps = Vec::with_capacity(32);
        for (index, node) in world.nodes.iter().enumerate() {
            let index = index as u8;
            self.proposing(world, index, node, &mut steps);
            self.hearing(world, index, node, &mut steps);
            self.failing(world, index, node, &mut steps);
        }
        if self.bounds.has_ledger && world.record.is_none() {
            steps.extend((0..world.sent.len() as u8).map(|sent| Step::Record { sent }));
        }
        for index in 0..world.clusters.len() {
            self.changes_of(world, index as u8, &mut steps);
        }
        steps
    }

    fn proposing(&self, world: &World, index: u8, node: &Node, steps: &mut Vec<Step>) {
        if node.proposal.is_some() {
            self.steps_of_seed(world, index, node, steps);
        } else if let Some(binding) = &node.binding {
            steps.push(Step::Crash { node: index });
            if self.rules.may_begin(binding, &self.bounds) {
                steps.push(Step::Begin { seed: index });
            }
        } else if Binding::new(node.id, &node.phase).is_some() {
            let has_begun = |id| world.cluster(id).is_none_or(|cluster| cluster.has_begun);
            if !node.phase.cluster().is_some_and(has_begun) {
                steps.push(Step::Restart { node: index });
            }
        } else if self.rules.decide(world, &self.bounds, node) == Decision::Propose
            && self.left(world).proposals > 0
        {
            proposals(world, index, node, steps);
        }
    }

    fn steps_of_seed(&self, world: &World, seed: u8, node: &Node, steps: &mut Vec<Step>) {
        let proposal = node.proposal.as_deref().unwrap();
        steps.push(Step::Crash { node: seed });
        let may_start_over = !world.clusters.is_empty() && !self.bounds.has_ledger;
        if may_start_over && self.rules.dropped(node).is_some() {
            steps.push(Step::StartOver { node: seed });
        }
        for (index, consent) in world.consents.iter().enumerate() {
            let invitation = self.rules.counted(proposal, consent.invitation);
            if consent.to != node.name || invitation != proposal.invitation() {
                continue;
            }
            let mut after = proposal.clone();
            after.answered(invitation, name(consent.from), consent.node, InviteAnswer::Consented);
            if after != *proposal {
                steps.push(Step::Consented { consent: index as u8, seed });
            }
        }
        let is_recorded = || world.record == Some((proposal.invitation().cluster, node.id));
        let may_bind = !self.bounds.has_ledger || is_recorded() || self.rules.has(Bug::LedgerIgnored);
        if may_bind && self.rules.bound(world, node).is_some() {
            steps.push(Step::Bind { seed });
        }
    }

    /// Messages that change something at this node.
    fn hearing(&self, world: &World, index: u8, node: &Node, steps: &mut Vec<Step>) {
        let invitations = if self.rules.is_alone(&self.bounds) { &[] } else { &world.sent[..] };
        for (sent, invitation) in invitations.iter().enumerate() {
            let sent = sent as u8;
            if invitation.by != node.name && self.is_news(world, invitation, node) {
                steps.push(Step::Invited { sent, node: index });
                if self.rules.has(Bug::AnswerBeforePersist) {
                    steps.push(Step::AnsweredEarly { sent, node: index });
                }
            }
        }
        for (cluster, it) in world.clusters.iter().enumerate() {
            let cluster = cluster as u8;
            let binds = || matches!(self.rules.frame_of(&node.phase, it.id), Ok(Some(_)));
            if it.addressed.contains(&node.id) && binds() {
                steps.push(Step::Frame { cluster, node: index });
                if self.rules.has(Bug::VoteBeforePersist) && !node.takes_part_in(it.id) {
                    steps.push(Step::BoundEarly { cluster, node: index });
                }
            }
        }
        for (added, (cluster, id)) in world.added.iter().enumerate() {
            if *id == node.id && matches!(self.rules.joined(&node.phase, *cluster), Ok(Some(_))) {
                steps.push(Step::Joined { added: added as u8, node: index });
            }
        }
        if self.left(world).returns > 0 && self.was_removed(world, node) {
            steps.push(Step::Return { node: index });
        }
    }

    fn failing(&self, world: &World, index: u8, node: &Node, steps: &mut Vec<Step>) {
        let Used { wipes, replacements, .. } = self.left(world);
        // An empty disk that nobody knows of is lost without a trace.
        let is_known = || world.clusters.iter().any(|cluster| cluster.addressed.contains(&node.id));
        if wipes > 0 && (*node.phase != Phase::FRESH || is_known()) {
            steps.push(Step::Wipe { node: index });
        }
        if replacements > 0 && !node.is_replaced {
            steps.push(Step::Replace { node: index });
        }
    }

    /// What a cluster does to its members, while it can commit.
    fn changes_of(&self, world: &World, index: u8, steps: &mut Vec<Step>) {
        let cluster = &world.clusters[usize::from(index)];
        if !world.can_acknowledge(cluster) {
            return;
        }
        for (node, it) in world.nodes.iter().enumerate() {
            let may_join = it.proposal.is_none()
                && match self.rules.decide(world, &self.bounds, it) {
                    Decision::Join(only) => only == cluster.id || self.rules.has(Bug::RemovedJoinsAny),
                    Decision::AwaitInvite | Decision::Propose => true,
                    Decision::Restart(_) | Decision::Refuse(_) => false,
                };
            if may_join && !world.added.contains(&(cluster.id, it.id)) {
                steps.push(Step::Add { cluster: index, node: node as u8 });
            }
        }
        for (learner, id) in cluster.learners.iter().enumerate() {
            if world.node(*id).is_some_and(|node| node.takes_part_in(cluster.id)) {
                steps.push(Step::Promote { cluster: index, learner: learner as u8 });
            }
        }
        if self.left(world).removals > 0 && cluster.voters.len() > 1 {
            steps.extend((0..cluster.voters.len() as u8).map(|voter| Step::Remove { cluster: index, voter }));
        }
    }

    fn is_news(&self, world: &World, sent: &Sent, node: &Node) -> bool {
        match self.rules.invited(&node.phase, sent.invitation) {
            (Some(_), _) => true,
            (None, InviteAnswer::Consented) => {
                self.is_of_use(world, sent) && !world.consents.contains(&consent(sent, node))
            }
            (None, _) => false,
        }
    }

    /// Whether a consent to this invitation can still count: its seed has the proposal in memory.
    pub(crate) fn is_of_use(&self, world: &World, sent: &Sent) -> bool {
        let is_waiting = |node: &Node| {
            let proposal = node.proposal.as_deref();
            node.name == sent.by && proposal.is_some_and(|proposal| proposal.invitation() == sent.invitation)
        };
        self.rules.has(Bug::OldAnswersCount) || world.nodes.iter().any(is_waiting)
    }

    fn was_removed(&self, world: &World, node: &Node) -> bool {
        let Phase::Bound { cluster, .. } = &*node.phase else { return false };
        let Some(cluster) = world.cluster(*cluster) else { return false };
        let is_member = cluster.voters.contains(&node.id) || cluster.learners.contains(&node.id);
        !is_member && cluster.addressed.contains(&node.id)
    }

    fn left(&self, world: &World) -> Used {
        let (bounds, used) = (&self.bounds, &world.used);
        Used {
            proposals: bounds.proposals.saturating_sub(used.proposals),
            wipes: bounds.wipes.saturating_sub(used.wipes),
            replacements: bounds.replacements.saturating_sub(used.replacements),
            removals: bounds.removals.saturating_sub(used.removals),
            returns: bounds.returns.saturating_sub(used.returns),
        }
    }
}

/// The order of two cluster ids matters where the rounds are equal, and the highest round where it is above the seed's own.
fn proposals(world: &World, index: u8, node: &Node, steps: &mut Vec<Step>) {
    let own = match &*node.phase {
        Phase::Unbound { consent } => consent.map_or(0, |consent| consent.round),
        _ => return,
    };
    let highest = world.sent.iter().map(|sent| sent.invitation.round).max().unwrap_or(0);
    let is_taken = |round: u64| world.sent.iter().any(|sent| sent.invitation.round == round);
    steps.push(Step::Propose { node: index, is_high: true, is_above: false });
    if is_taken(own + 1) {
        steps.push(Step::Propose { node: index, is_high: false, is_above: false });
    }
    if highest > own {
        steps.push(Step::Propose { node: index, is_high: true, is_above: true });
    }
}
