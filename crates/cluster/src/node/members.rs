//! The membership manager: what users and operators do with the members of a cluster.

use std::sync::Arc;
use std::time::Duration;

use super::ask::{Ask, AskFailure};
use super::deposed::deposed;
use super::join::{ALIVE, confirmed_status, leader_address};
use super::promote::voter_to_replace;
use super::removed::hears_leader;
use super::shared::Shared;
use crate::adapter::{Applied, RaftAdapter, RaftFailure, RaftStatus};
use crate::error::{ClusterError, ErrorKind};
use crate::member::{Member, Role};
use crate::protocol::{
    AdminAnswer, AdminCommand, AdminRequest, ClusterView, FailureKind, FormationAnswer, FormationRequest,
    MemberView, NodeView,
};

/// For a request that is passed on to the leader.
const FORWARD_LIMIT: Duration = Duration::from_secs(10);

/// A voter that answered within this time is counted on when another is removed. Leaders ask several times in it. A voter that went down a
/// moment earlier and were counted on would stop the cluster.
const ANSWERS_NOW: Duration = Duration::from_secs(1);

/// Answers a request of an operator, here or at the leader.
pub(super) async fn administer(shared: &Arc<Shared>, ask: &dyn Ask, request: AdminRequest) -> AdminAnswer {
    if matches!(request.what, AdminCommand::Node) {
        return node_view(shared).await.map_or_else(failed, AdminAnswer::Node);
    }
    let status = match shared.bound_engine() {
        Ok(engine) => engine.status(),
        Err(error) => return failed(error),
    };
    let is_leader = status.borrow().is_leader;
    if is_leader || request.is_forwarded {
        return here(shared, ask, request.what).await.unwrap_or_else(failed);
    }
    let known = status.borrow().clone();
    let (Some(leader), Some(address)) = (known.leader, leader_address(shared, &known)) else {
        return failed(ClusterError::new(
            ErrorKind::NotLeader,
            "no leader is known: a majority of the voters has to be up",
        ));
    };
    let forwarded = AdminRequest { is_forwarded: true, ..request };
    let answer = tokio::select! {
        answer = ask.admin(address, forwarded, FORWARD_LIMIT) => answer,
        () = deposed(leader, status) => {
            let message = "the leader was replaced before it answered".to_owned();
            Err(AskFailure { message, is_unsent: false })
        }
    };
    match answer {
        Ok(answer) => answer,
        Err(failure) if failure.is_unsent => failed(ClusterError::new(ErrorKind::NotLeader, failure.message)),
        Err(failure) => failed(ClusterError::new(ErrorKind::Unknown, failure.message)),
    }
}

async fn here(shared: &Arc<Shared>, ask: &dyn Ask, what: AdminCommand) -> Result<AdminAnswer, ClusterError> {
    let engine = shared.bound_engine()?;
    let done = |sentence: String| Ok(AdminAnswer::Done(sentence));
    match what {
        AdminCommand::Members => cluster_view(shared).await.map(AdminAnswer::Members),
        AdminCommand::Add(address) => {
            come(shared, ask, address.clone()).await?;
            done(format!("the node at {address} joins; it votes when it has caught up"))
        }
        AdminCommand::Promote(named) => {
            let member = shared.find(&named)?;
            promote(engine, &member).await?;
            done(format!("{} votes", member.name))
        }
        AdminCommand::Remove(named) => {
            let member = shared.find(&named)?;
            remove(shared, engine, &member).await?;
            done(format!("{} is no longer a member", member.name))
        }
        AdminCommand::Transfer(named) => {
            let to = named.map(|named| shared.find(&named)).transpose()?;
            let to = transfer(shared, engine, to).await?;
            done(format!("{} leads", to.name))
        }
        AdminCommand::Propose(command) => {
            let Applied { index, answer } = shared.propose(command).await?;
            Ok(AdminAnswer::Applied { index, answer })
        }
        AdminCommand::Node => node_view(shared).await.map(AdminAnswer::Node),
    }
}

/// What the leader knows, after a majority has confirmed that it leads.
pub(super) async fn cluster_view(shared: &Shared) -> Result<ClusterView, ClusterError> {
    let engine = shared.bound_engine()?;
    let status = confirmed_status(&**engine).await?;
    let known = shared.known();
    let view = |(member, role): &(Member, Role)| {
        let is_self = member.node == known.node;
        let matched = status.matched.iter().find(|(node, _)| *node == member.node).map(|(_, index)| *index);
        let lag =
            if is_self { Some(0) } else { matched.map(|index| status.last_index.saturating_sub(index)) };
        let heard = if is_self { Some(Duration::ZERO) } else { shared.heard.ago(member.node) };
        MemberView {
            member: member.clone(),
            role: *role,
            is_leader: status.leader == Some(member.node),
            lag,
            heard_ms_ago: heard.map(|ago| ago.as_millis() as u64),
        }
    };
    let cluster = known
        .phase
        .cluster()
        .ok_or_else(|| ClusterError::new(ErrorKind::NotLeader, "this node is in no cluster"))?;
    Ok(ClusterView {
        cluster,
        term: status.term,
        committed_index: status.committed_index,
        members: status.configuration.members.iter().map(view).collect(),
    })
}

pub(super) async fn node_view(shared: &Shared) -> Result<NodeView, ClusterError> {
    let known = shared.known();
    let (status, hash) = match shared.engine() {
        Some(engine) => {
            let hash = engine.state_hash().await?;
            (engine.status().borrow().clone(), hash)
        }
        None => (RaftStatus::default(), (0, 0)),
    };
    let leader = status.leader.and_then(|leader| status.configuration.member(leader));
    Ok(NodeView {
        node: known.node,
        name: shared.name().clone(),
        cluster: known.phase.cluster(),
        leader: leader.map(|(member, _)| member.name.clone()),
        applied_index: status.applied_index,
        hashed_index: hash.1,
        state_hash: hash.0,
        is_ready: is_ready(shared, &status),
    })
}

/// A leader is known and heard, this node is a member, and it has applied what it knows to be committed.
pub(super) fn is_ready(shared: &Shared, status: &RaftStatus) -> bool {
    let is_member = status.configuration.member(shared.known().node).is_some();
    status.stopped.is_none()
        && is_member
        && status.applied_index >= status.committed_index
        && hears_leader(shared, status)
}

async fn come(shared: &Shared, ask: &dyn Ask, address: String) -> Result<(), ClusterError> {
    let cluster = shared.known().phase.cluster();
    let cluster =
        cluster.ok_or_else(|| ClusterError::new(ErrorKind::NotLeader, "this node is in no cluster"))?;
    let request = FormationRequest::Come(cluster, shared.advertised.clone());
    match ask.formation(address, None, request).await {
        Ok(FormationAnswer::Coming(Ok(()))) => Ok(()),
        Ok(FormationAnswer::Coming(Err(why))) => Err(ClusterError::new(ErrorKind::Refused, why)),
        Ok(_) => Err(ClusterError::new(ErrorKind::Unknown, "the answer of the node makes no sense")),
        Err(failure) => Err(ClusterError::new(ErrorKind::SeedUnavailable, failure.message)),
    }
}

async fn promote(engine: &Arc<dyn RaftAdapter>, member: &Member) -> Result<(), ClusterError> {
    let status = engine.status().borrow().clone();
    if !status.is_leader {
        return Err(RaftFailure::NotLeader(status.leader).into());
    }
    if status.configuration.member(member.node).is_some_and(|(_, role)| *role == Role::Voter) {
        return Err(ClusterError::new(ErrorKind::AlreadyMember, format!("{} votes already", member.name)));
    }
    let replaced = voter_to_replace(&status, member);
    Ok(engine.promote(member.node, replaced, status.configuration.index).await?)
}

/// A leader that is to be removed hands over first; whoever leads then is asked again.
async fn remove(shared: &Shared, engine: &Arc<dyn RaftAdapter>, member: &Member) -> Result<(), ClusterError> {
    let status = engine.status().borrow().clone();
    if !status.is_leader {
        return Err(RaftFailure::NotLeader(status.leader).into());
    }
    check_majority_without(shared, &status, member)?;
    if member.node == shared.known().node {
        let to = transfer(shared, engine, None).await?;
        return Err(RaftFailure::NotLeader(Some(to.node)).into());
    }
    Ok(engine.remove(member.node, status.configuration.index).await?)
}

/// The voters that are left have to include a majority that is alive.
fn check_majority_without(shared: &Shared, status: &RaftStatus, member: &Member) -> Result<(), ClusterError> {
    let left: Vec<&Member> =
        status.configuration.voters().filter(|voter| voter.node != member.node).collect();
    let is_voter = left.len() < status.configuration.voters().count();
    let own = shared.known().node;
    let is_alive = |voter: &&&Member| {
        voter.node == own || shared.heard.ago(voter.node).is_some_and(|ago| ago < ANSWERS_NOW)
    };
    let alive = left.iter().filter(is_alive).count();
    if is_voter && alive < left.len() / 2 + 1 {
        return Err(ClusterError::new(
            ErrorKind::Refused,
            format!(
                "without {} there would be {} voters, of which {alive} are up: that is no majority, and the cluster would stop; bring \
                 another voter up first",
                member.name,
                left.len()
            ),
        ));
    }
    Ok(())
}

/// To that voter, or to the one that has most of the log.
pub(super) async fn transfer(
    shared: &Shared,
    engine: &Arc<dyn RaftAdapter>,
    to: Option<Member>,
) -> Result<Member, ClusterError> {
    let status = engine.status().borrow().clone();
    if !status.is_leader {
        return Err(RaftFailure::NotLeader(status.leader).into());
    }
    let own = shared.known().node;
    let matched = |voter: &&Member| {
        let index = status.matched.iter().find(|(node, _)| *node == voter.node).map(|(_, index)| *index);
        let is_alive = shared.heard.ago(voter.node).is_some_and(|ago| ago < ALIVE);
        (is_alive, index)
    };
    let best =
        || status.configuration.voters().filter(|voter| voter.node != own).max_by_key(matched).cloned();
    let none = || ClusterError::new(ErrorKind::Refused, "there is no other voter to hand over to");
    let to = to.or_else(best).ok_or_else(none)?;
    if to.node == own {
        return Err(ClusterError::new(ErrorKind::Refused, format!("{} leads already", to.name)));
    }
    let is_voter = status.configuration.voters().any(|voter| voter.node == to.node);
    if !is_voter {
        return Err(ClusterError::new(
            ErrorKind::Refused,
            format!("{} does not vote, so it cannot lead", to.name),
        ));
    }
    engine.transfer(to.node).await?;
    Ok(to)
}

fn failed(error: ClusterError) -> AdminAnswer {
    let kind = match error.kind() {
        ErrorKind::NotLeader => FailureKind::NotLeader,
        ErrorKind::Unknown => FailureKind::Unknown,
        ErrorKind::Stopped | ErrorKind::Storage | ErrorKind::Corrupt | ErrorKind::PermissionDenied => {
            FailureKind::Stopped
        }
        _ => FailureKind::Refused,
    };
    AdminAnswer::Failed { kind, message: error.to_string() }
}
