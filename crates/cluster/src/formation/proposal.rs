//! The seed's side of a formation: who has consented so far.

use std::collections::{BTreeMap, BTreeSet};

use super::{Invitation, InviteAnswer, Phase, Voter};
use crate::names::{ClusterId, NodeId, NodeName};

/// Invitations that are under way. Kept in memory: after a restart the seed proposes again, one round higher.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proposal {
    invitation: Invitation,
    seed: Voter,
    others: BTreeSet<NodeName>,
    consents: BTreeMap<NodeName, NodeId>,
}

/// How far a proposal is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// These have not consented yet.
    Waiting(Vec<NodeName>),
    /// All have: these are the voters. The seed binds itself with [`Proposal::bound`], and then the others.
    Complete(Vec<Voter>),
    /// Somebody consented to an invitation of this round. Propose again, above it.
    Superseded(u64),
    /// Somebody is in this cluster already, or was. Drop the proposal, and join.
    AlreadyIn(ClusterId),
}

impl Proposal {
    /// Invites `others` to form a cluster with `seed`. The seed's own name among the others is left out.
    ///
    /// The caller writes the phase to disk before it invites anybody. `drawn` becomes the id of a new cluster. `above` is the highest
    /// round that was heard of; 0 if none was.
    #[must_use]
    pub fn new(
        phase: &Phase,
        seed: Voter,
        others: impl IntoIterator<Item = NodeName>,
        drawn: ClusterId,
        above: u64,
    ) -> Option<(Phase, Proposal)> {
        let Phase::Unbound { consent } = phase else { return None };
        let highest = consent.map_or(0, |consent| consent.round).max(above);
        let invitation = Invitation { round: highest.checked_add(1)?, cluster: drawn };
        Some((Phase::Unbound { consent: Some(invitation) }, Proposal::of(invitation, seed, others)))
    }

    /// A cluster of this node alone, whose record is in the ledger: this node wrote that, and stopped before it bound itself.
    pub fn recorded(phase: &Phase, seed: Voter) -> Option<Proposal> {
        let Phase::Unbound { consent: Some(invitation) } = phase else { return None };
        Some(Proposal::of(*invitation, seed, []))
    }

    fn of(invitation: Invitation, seed: Voter, others: impl IntoIterator<Item = NodeName>) -> Proposal {
        let others = others.into_iter().filter(|name| *name != seed.name).collect();
        Proposal { invitation, seed, others, consents: BTreeMap::new() }
    }

    /// What is sent to those who have not consented.
    pub fn invitation(&self) -> Invitation {
        self.invitation
    }

    /// An invited node has answered this proposal. `node` is the id that it gave.
    pub fn answered(
        &mut self,
        invitation: Invitation,
        from: &NodeName,
        node: NodeId,
        answer: InviteAnswer,
    ) -> Progress {
        match answer {
            // An answer to an earlier proposal says nothing about this one.
            InviteAnswer::Consented if invitation == self.invitation && self.others.contains(from) => {
                self.consents.insert(from.clone(), node);
                self.progress()
            }
            InviteAnswer::Consented => self.progress(),
            InviteAnswer::Higher(round) if round >= self.invitation.round => Progress::Superseded(round),
            InviteAnswer::Higher(_) => self.progress(),
            InviteAnswer::AlreadyIn(cluster) => Progress::AlreadyIn(cluster),
        }
    }

    /// Who has consented, and who has not.
    pub fn progress(&self) -> Progress {
        let missing = |name: &&NodeName| !self.consents.contains_key(*name);
        let waiting: Vec<NodeName> = self.others.iter().filter(missing).cloned().collect();
        if !waiting.is_empty() {
            return Progress::Waiting(waiting);
        }
        let others = self.consents.iter().map(|(name, node)| Voter { node: *node, name: name.clone() });
        Progress::Complete(std::iter::once(self.seed.clone()).chain(others).collect())
    }

    /// Binds the seed, when all have consented and it has not itself consented to a higher invitation meanwhile.
    ///
    /// The caller writes the new phase to disk, and goes on with [`Binding`](super::Binding).
    #[must_use]
    pub fn bound(&self, phase: &Phase) -> Option<Phase> {
        let is_own = *phase == Phase::Unbound { consent: Some(self.invitation) };
        match self.progress() {
            Progress::Complete(voters) if is_own => {
                Some(Phase::Bound { cluster: self.invitation.cluster, initial: Some(voters) })
            }
            _ => None,
        }
    }
}
