//! [`RaftAdapter`] on openraft: what was asked, and what became of it, in the words of the crate.

use std::io;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openraft::errors::{ClientWriteError, Fatal, InitializeError, LinearizableReadError, RaftError};
use openraft::raft::ReadPolicy;
use tokio::sync::watch;
use tokio::time::timeout;

use super::status::reason;
use super::types::{Command, Types, nodes};
use super::{OpenraftEngine, types};
use crate::adapter::{Applied, RaftAdapter, RaftFailure, RaftStatus};
use crate::member::Member;
use crate::names::NodeId;

/// A command: more belongs into a store of its own. Every node keeps it in memory until a snapshot, and sends it in one message.
const COMMAND_MAX_BYTES: usize = 1 << 20;
/// How long a proposal, a confirmation or a change of the members may wait for a majority. Longer than an election takes; who waits longer
/// asks a node that leads nobody.
pub(super) const PROPOSAL_LIMIT: Duration = Duration::from_secs(10);
/// A transfer is a message and an election. More elections than this, and it has failed.
const TRANSFER_ELECTIONS: u32 = 4;

impl RaftAdapter for OpenraftEngine {
    fn bootstrap(&self, voters: Vec<Member>) -> BoxFuture<'_, Result<(), RaftFailure>> {
        Box::pin(async move {
            match self.raft.initialize(nodes(&voters)).await {
                Ok(()) => Ok(()),
                Err(RaftError::Fatal(fatal)) => Err(self.stopped(&fatal)),
                Err(RaftError::APIError(InitializeError::NotInMembers(_))) => Err(RaftFailure::Refused(
                    format!("node {} is not one of the voters: begin the cluster at one of them", self.node),
                )),
                Err(RaftError::APIError(InitializeError::NotAllowed(_))) => self.is_begun_with(&voters).await,
            }
        })
    }

    fn has_existing_state(&self) -> BoxFuture<'_, Result<bool, RaftFailure>> {
        Box::pin(async { Ok(self.log.is_used()) })
    }

    fn propose(&self, command: Vec<u8>) -> BoxFuture<'_, Result<Applied, RaftFailure>> {
        Box::pin(async move {
            if command.len() > COMMAND_MAX_BYTES {
                return Err(RaftFailure::Refused(format!(
                    "a command of {} bytes is too long: the limit is {COMMAND_MAX_BYTES} bytes",
                    command.len()
                )));
            }
            let written = timeout(PROPOSAL_LIMIT, self.raft.client_write(Command::from(command))).await;
            let written = written.map_err(|_| too_late())?;
            let written = written.map_err(|error| self.not_written(error))?;
            Ok(Applied { index: written.log_id.index, answer: written.data.0 })
        })
    }

    fn confirm_leadership(&self) -> BoxFuture<'_, Result<u64, RaftFailure>> {
        Box::pin(async {
            let confirmed =
                timeout(PROPOSAL_LIMIT, self.raft.ensure_linearizable(ReadPolicy::ReadIndex)).await;
            match confirmed.map_err(|_| too_late())? {
                Ok(read) => Ok(read.index()),
                Err(RaftError::Fatal(fatal)) => Err(self.stopped(&fatal)),
                Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(to))) => {
                    Err(RaftFailure::NotLeader(to.leader_id.map(NodeId::from_random)))
                }
                Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_))) => {
                    Err(RaftFailure::Unknown("no majority answered, so another node may lead".to_owned()))
                }
            }
        })
    }

    fn add_learner(&self, member: Member) -> BoxFuture<'_, Result<(), RaftFailure>> {
        Box::pin(self.change_by_adding(member))
    }

    fn promote(
        &self,
        node: NodeId,
        in_place_of: Option<NodeId>,
        decided_on: u64,
    ) -> BoxFuture<'_, Result<(), RaftFailure>> {
        Box::pin(self.change_by_promoting(node, in_place_of, decided_on))
    }

    fn remove(&self, node: NodeId, decided_on: u64) -> BoxFuture<'_, Result<(), RaftFailure>> {
        Box::pin(self.change_by_removing(node, decided_on))
    }

    fn transfer(&self, to: NodeId) -> BoxFuture<'_, Result<(), RaftFailure>> {
        Box::pin(async move {
            let mut status = self.status.clone();
            self.may_transfer(&status.borrow_and_update(), to)?;
            self.raft.trigger().transfer_leader(to.number()).await.map_err(|fatal| self.stopped(&fatal))?;
            let other_leads = |now: &RaftStatus| {
                now.stopped.is_some() || now.leader.is_some_and(|leader| leader == to || leader != self.node)
            };
            let limit = self.election_max * TRANSFER_ELECTIONS;
            let seen = timeout(limit, status.wait_for(other_leads)).await;
            let seen = seen.map_err(|_| {
                RaftFailure::Unknown(format!("node {to} has not taken over within {} ms", limit.as_millis()))
            })?;
            let seen = seen.map_err(|_| self.stopped(&Fatal::Stopped))?;
            match (&seen.stopped, seen.leader) {
                (Some(why), _) => Err(RaftFailure::Stopped(why.clone())),
                (None, Some(leader)) if leader != to => {
                    Err(RaftFailure::Unknown(format!("node {leader} leads instead of node {to}")))
                }
                (None, _) => Ok(()),
            }
        })
    }

    fn status(&self) -> watch::Receiver<RaftStatus> {
        self.status.clone()
    }

    fn answers(&self) -> BoxFuture<'_, Result<(), RaftFailure>> {
        Box::pin(async { self.raft.with_raft_state(|_| ()).await.map_err(|fatal| self.stopped(&fatal)) })
    }

    fn receive(&self, message: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, RaftFailure>> {
        Box::pin(async move { self.receiver.receive(&message).await })
    }

    fn state_hash(&self) -> BoxFuture<'_, Result<(u64, u64), RaftFailure>> {
        Box::pin(async {
            let hashed = self.raft.with_state_machine(|machine| Box::pin(async { machine.hash() })).await;
            hashed.map_err(|fatal| self.stopped(&fatal))
        })
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // The task that openraft runs in may have failed; either way it has ended.
            let _ = self.raft.shutdown().await;
            if let Err(error) = self.log.close().await {
                note_unwritten(&error);
            }
        })
    }
}

pub(super) fn too_late() -> RaftFailure {
    RaftFailure::Unknown(format!("no majority confirmed it within {} s", PROPOSAL_LIMIT.as_secs()))
}

/// Nothing that was acknowledged is lost: only the committed index may be older on disk than in memory.
fn note_unwritten(error: &io::Error) {
    tracing::debug!(%error, "the log was closed without a last write");
}

impl OpenraftEngine {
    /// Bootstrap found a log. That of the same voters is the result of an earlier call.
    async fn is_begun_with(&self, voters: &[Member]) -> Result<(), RaftFailure> {
        let state =
            self.raft.with_raft_state(|state| state.membership_state.effective().voter_ids().collect());
        let present: Vec<u64> = state.await.map_err(|fatal| self.stopped(&fatal))?;
        if present.iter().eq(nodes(voters).keys()) {
            return Ok(());
        }
        Err(RaftFailure::Refused(
            "the storage has a cluster with other voters: change its members one by one, or start with an empty directory"
                .to_owned(),
        ))
    }

    fn may_transfer(&self, status: &RaftStatus, to: NodeId) -> Result<(), RaftFailure> {
        if let Some(why) = &status.stopped {
            return Err(RaftFailure::Stopped(why.clone()));
        }
        if !status.is_leader {
            return Err(RaftFailure::NotLeader(status.leader));
        }
        if status.configuration.voters().any(|voter| voter.node == to) {
            return Ok(());
        }
        Err(RaftFailure::Refused(format!("node {to} is not a voter: transfer leadership to one that is")))
    }

    pub(super) fn stopped(&self, fatal: &Fatal<Types>) -> RaftFailure {
        let noted = self.failure.check().err();
        RaftFailure::Stopped(noted.map_or_else(|| reason(fatal), |error| error.to_string()))
    }

    pub(super) fn not_written(&self, error: RaftError<Types, ClientWriteError<types::Types>>) -> RaftFailure {
        match error {
            RaftError::Fatal(fatal) => self.stopped(&fatal),
            RaftError::APIError(ClientWriteError::ForwardToLeader(to)) => {
                RaftFailure::NotLeader(to.leader_id.map(NodeId::from_random))
            }
            RaftError::APIError(ClientWriteError::LogEntryDiscarded(_)) => {
                RaftFailure::Unknown("another node took over before it was confirmed".to_owned())
            }
            RaftError::APIError(
                error
                @ (ClientWriteError::ChangeMembershipError(_) | ClientWriteError::PreconditionFailed(_)),
            ) => RaftFailure::Refused(error.to_string()),
        }
    }
}
