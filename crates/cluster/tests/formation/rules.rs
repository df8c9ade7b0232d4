//! The product's rules, and what they are when a bug is planted in them. Without a bug, every call goes to the product.

use bellwether_cluster::formation::{
    Binding, Decision, Invitation, InviteAnswer, NotInCluster, Phase, Progress, Proposal, decide,
};
use bellwether_cluster::{ClusterId, NodeName};

use crate::world::{Bounds, Node, World, name};

/// A mistake that an implementation of the formation could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A node consents to every invitation, lower ones too.
    ConsentMovesDown,
    /// A node that is in a cluster consents to another.
    BoundNodeConsents,
    /// A node takes part in a cluster that it did not consent to.
    FrameWithoutConsent,
    /// A node votes before it has written down that it is bound.
    VoteBeforePersist,
    /// A node answers an invitation before it has written down its consent.
    AnswerBeforePersist,
    /// The seed takes silence of one node for consent.
    SilenceIsConsent,
    /// The seed forms a cluster of those who answer, which may be itself alone.
    SilentNodesLeftOut,
    /// Raft begins when a majority is bound.
    MajorityBegins,
    /// The seed counts answers to earlier invitations.
    OldAnswersCount,
    /// The seed goes on with its proposal after it consented to another.
    SeedIgnoresItsConsent,
    /// A seed that hears of a cluster starts over with what its disk said when it asked, and not with what it says now.
    StartOverWritesOldPhase,
    /// A removed member forgets its cluster.
    RemovalUnbinds,
    /// A removed member joins whatever cluster answers.
    RemovedJoinsAny,
    /// A node with an empty disk uses the node id that its name had before.
    NodeIdReused,
    /// The cluster id is made of the names instead of drawn.
    ClusterIdReused,
    /// A seed with an empty disk does not look at the ledger.
    LedgerIgnored,
}

/// The rules of the product, with at most one bug.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) bug: Option<Bug>,
}

impl Rules {
    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    pub(crate) fn decide(&self, world: &World, bounds: &Bounds, node: &Node) -> Decision {
        let is_seed = node.name < bounds.seeds;
        if self.has(Bug::LedgerIgnored) && is_seed && node.phase.cluster().is_none() {
            return Decision::Propose;
        }
        decide(node.id, &node.phase, is_seed, usize::from(bounds.nodes), &world.ledger(bounds))
    }

    pub(crate) fn cluster_id(&self, world: &World, is_high: bool) -> ClusterId {
        // Random ids fall anywhere. Only their order matters: each is above all before it, or below.
        let number = u128::from(world.used.proposals) + 1;
        let drawn = if is_high { 1000 + number } else { 1000 - number };
        ClusterId::from_random(if self.has(Bug::ClusterIdReused) { 1000 } else { drawn })
    }

    pub(crate) fn invited(&self, phase: &Phase, invitation: Invitation) -> (Option<Phase>, InviteAnswer) {
        match phase.invited(invitation) {
            (None, InviteAnswer::Higher(_)) if self.has(Bug::ConsentMovesDown) => {
                (Some(Phase::Unbound { consent: Some(invitation) }), InviteAnswer::Consented)
            }
            (None, InviteAnswer::AlreadyIn(_)) if self.has(Bug::BoundNodeConsents) => {
                (Some(Phase::Unbound { consent: Some(invitation) }), InviteAnswer::Consented)
            }
            answer => answer,
        }
    }

    pub(crate) fn frame_of(&self, phase: &Phase, cluster: ClusterId) -> Result<Option<Phase>, NotInCluster> {
        match phase.frame_of(cluster) {
            Err(_) if self.has(Bug::FrameWithoutConsent) && phase.cluster().is_none() => {
                Ok(Some(Phase::Bound { cluster, initial: None }))
            }
            result => result,
        }
    }

    pub(crate) fn joined(&self, phase: &Phase, cluster: ClusterId) -> Result<Option<Phase>, NotInCluster> {
        match phase {
            Phase::Removed { .. } if self.has(Bug::RemovedJoinsAny) => Phase::FRESH.joined(cluster),
            phase => phase.joined(cluster),
        }
    }

    pub(crate) fn removed(&self, phase: &Phase) -> Option<Phase> {
        phase.removed().map(|removed| if self.has(Bug::RemovalUnbinds) { Phase::FRESH } else { removed })
    }

    /// What the disk of a seed says after it has dropped its proposal; `None` where it goes on as it is.
    pub(crate) fn dropped(&self, seed: &Node) -> Option<Phase> {
        match seed.proposal.as_deref() {
            Some(proposal) if self.has(Bug::StartOverWritesOldPhase) => {
                Some(Phase::Unbound { consent: Some(proposal.invitation()) })
            }
            _ => seed.phase.dropped(),
        }
    }

    /// Whether a seed begins alone, and the others join: with a ledger.
    pub(crate) fn is_alone(&self, bounds: &Bounds) -> bool {
        bounds.has_ledger || self.has(Bug::SilentNodesLeftOut)
    }

    /// Whom a seed invites.
    pub(crate) fn others(&self, bounds: &Bounds) -> Vec<NodeName> {
        bounds.names().filter(|_| !self.is_alone(bounds)).map(|ordinal| name(ordinal).clone()).collect()
    }

    /// The invitation that the seed takes an answer to be for.
    pub(crate) fn counted(&self, proposal: &Proposal, invitation: Invitation) -> Invitation {
        if self.has(Bug::OldAnswersCount) { proposal.invitation() } else { invitation }
    }

    pub(crate) fn bound(&self, world: &World, seed: &Node) -> Option<Phase> {
        let proposal = seed.proposal.as_deref()?;
        match self.bug {
            Some(Bug::SilenceIsConsent) => {
                let mut proposal = proposal.clone();
                let (invitation, progress) = (proposal.invitation(), proposal.progress());
                if let Progress::Waiting(silent) = progress
                    && let [silent] = &silent[..]
                {
                    let last = world.nodes.iter().rfind(|node| name(node.name) == silent).unwrap();
                    proposal.answered(invitation, silent, last.id, InviteAnswer::Consented);
                }
                proposal.bound(&seed.phase)
            }
            Some(Bug::SeedIgnoresItsConsent) => {
                proposal.bound(&Phase::Unbound { consent: Some(proposal.invitation()) })
            }
            _ => proposal.bound(&seed.phase),
        }
    }

    pub(crate) fn may_begin(&self, binding: &Binding, bounds: &Bounds) -> bool {
        let missing = binding.waiting().count();
        let is_majority = self.has(Bug::MajorityBegins) || self.has(Bug::SilenceIsConsent);
        binding.complete().is_some() || (is_majority && missing * 2 < usize::from(bounds.nodes))
    }
}
