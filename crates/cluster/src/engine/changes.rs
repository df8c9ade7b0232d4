//! Changes of the members: one at a time, each guarded by the configuration that it was decided on.
//!
//! A change of voters takes two entries, with both configurations in force between them. If the leader is lost in between, or nobody waits for
//! the change any more, the next leader writes the second one ([`finish_interrupted`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use openraft::async_runtime::watch::WatchReceiver;
use openraft::errors::{ClientWriteError, RaftError};
use openraft::{ChangeMembers, Precondition, RaftMetrics, ServerState};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::OpenraftEngine;
use super::adapter::{PROPOSAL_LIMIT, too_late};
use super::types::{LogId, Raft, RaftNode, StoredMembership, Types};
use crate::adapter::RaftFailure;
use crate::member::Member;
use crate::names::NodeId;

type Change = ChangeMembers<u64, RaftNode>;

impl OpenraftEngine {
    pub(super) async fn change_by_adding(&self, member: Member) -> Result<(), RaftFailure> {
        let (id, node) = (member.node.number(), RaftNode::from(&member));
        let present = self.present()?;
        match present.get_node(&id) {
            Some(known) if *known == node => Ok(()),
            Some(_) => self.change(Change::SetNodes(BTreeMap::from([(id, node)])), &present).await,
            None => self.change(Change::AddNodes(BTreeMap::from([(id, node)])), &present).await,
        }
    }

    pub(super) async fn change_by_promoting(
        &self,
        node: NodeId,
        in_place_of: Option<NodeId>,
        decided_on: u64,
    ) -> Result<(), RaftFailure> {
        let present = self.decided_on(decided_on)?;
        if present.get_node(&node.number()).is_none() {
            return Err(RaftFailure::Refused(format!("node {node} is no member: add it first")));
        }
        let mut voters: BTreeSet<u64> = present.voter_ids().collect();
        if let Some(replaced) = in_place_of
            && !voters.remove(&replaced.number())
        {
            return Err(RaftFailure::Refused(format!(
                "node {replaced} is not a voter, so nobody can take its place"
            )));
        }
        voters.insert(node.number());
        self.change(Change::ReplaceAllVoters(voters), &present).await
    }

    pub(super) async fn change_by_removing(&self, node: NodeId, decided_on: u64) -> Result<(), RaftFailure> {
        let present = self.decided_on(decided_on)?;
        let id = node.number();
        let is_voter = present.voter_ids().any(|voter| voter == id);
        match present.get_node(&id) {
            None => Ok(()),
            Some(_) if is_voter => self.change(Change::RemoveVoters(BTreeSet::from([id])), &present).await,
            Some(_) => self.change(Change::RemoveNodes(BTreeSet::from([id])), &present).await,
        }
    }

    /// Who leaves the voters leaves the cluster.
    async fn change(&self, change: Change, present: &StoredMembership) -> Result<(), RaftFailure> {
        let changed = timeout(PROPOSAL_LIMIT, async {
            let _changing = self.changing.lock().await;
            self.raft.change_membership_if(change, false, [guard(present)]).await
        });
        match changed.await.map_err(|_| too_late())? {
            Ok(_) => Ok(()),
            Err(RaftError::APIError(ClientWriteError::PreconditionFailed(_))) => Err(outdated()),
            Err(error) => Err(self.not_written(error)),
        }
    }

    /// The committed configuration, if this node leads and knows of no later one.
    fn present(&self) -> Result<StoredMembership, RaftFailure> {
        let metrics = self.raft.metrics().borrow_watched().clone();
        if let Err(fatal) = &metrics.running_state {
            return Err(self.stopped(fatal));
        }
        if metrics.state != ServerState::Leader {
            return Err(RaftFailure::NotLeader(metrics.current_leader.map(NodeId::from_random)));
        }
        if metrics.committed_membership_config.log_id() != metrics.membership_config.log_id() {
            return Err(RaftFailure::Refused(
                "a change of the members is under way: wait for its end".to_owned(),
            ));
        }
        Ok((*metrics.committed_membership_config).clone())
    }

    fn decided_on(&self, index: u64) -> Result<StoredMembership, RaftFailure> {
        let present = self.present()?;
        if present.log_id().as_ref().is_some_and(|id: &LogId| id.index == index) {
            return Ok(present);
        }
        Err(outdated())
    }
}

fn outdated() -> RaftFailure {
    RaftFailure::Refused("the members have changed since this was decided: look at them again".to_owned())
}

fn guard(present: &StoredMembership) -> Precondition<Types> {
    Precondition::LastMembershipLogId { last_membership_log_id: *present.log_id() }
}

/// Writes the second entry of a change that nobody is working on.
pub(super) async fn finish_interrupted(raft: Raft, changing: Arc<Mutex<()>>) {
    let mut metrics = raft.metrics();
    loop {
        let half_done = interrupted(&metrics.borrow_watched());
        if let Some(present) = half_done
            && let Ok(_changing) = changing.try_lock()
        {
            let flatten = Change::AddVoterIds(BTreeSet::new());
            // A failure leaves the two configurations in force. They are found again at the next change of anything.
            if let Err(error) = raft.change_membership_if(flatten, false, [guard(&present)]).await {
                tracing::debug!(%error, "an interrupted change of the members is not finished yet");
            }
        }
        if metrics.changed().await.is_err() {
            return;
        }
    }
}

fn interrupted(metrics: &RaftMetrics<Types>) -> Option<StoredMembership> {
    let committed = &metrics.committed_membership_config;
    let is_joint = committed.get_joint_config().len() > 1;
    let is_all = committed.log_id() == metrics.membership_config.log_id();
    (metrics.state == ServerState::Leader && is_joint && is_all).then(|| (**committed).clone())
}
