//! The leader's answer to a node that wants to join.

use std::time::Duration;

use super::shared::Shared;
use crate::adapter::{RaftAdapter, RaftFailure, RaftStatus};
use crate::formation::Phase;
use crate::member::{Member, Role};
use crate::names::{ClusterId, NodeId};
use crate::protocol::{JoinAnswer, Standing};

/// A member that answered within this time is alive, and nobody takes its place.
pub(super) const ALIVE: Duration = Duration::from_secs(5);

/// Adds the node as a learner, which the promotion makes a voter of when it has caught up. A member of the same name with another node id
/// lost its disk: the new one takes its place, unless the old one is alive.
pub(super) async fn answer(shared: &Shared, member: Member, only: Option<ClusterId>) -> JoinAnswer {
    let Phase::Bound { cluster, .. } = shared.known().phase else { return JoinAnswer::NoCluster };
    let Some(engine) = shared.engine() else { return JoinAnswer::NoCluster };
    if let Some(only) = only.filter(|only| *only != cluster) {
        return JoinAnswer::Refused(format!("this is cluster {cluster}, and not {only}"));
    }
    let status = engine.status().borrow().clone();
    if !status.is_leader {
        return JoinAnswer::AskLeader(cluster, leader_address(shared, &status));
    }
    if status.configuration.member(member.node).is_some_and(|(known, _)| *known == member) {
        return JoinAnswer::Member(cluster);
    }
    if let Err(why) = make_room(shared, &status, &member).await {
        return JoinAnswer::Refused(why);
    }
    tracing::info!(%member, "a node joins the cluster");
    match engine.add_learner(member).await {
        Ok(()) => JoinAnswer::Member(cluster),
        Err(RaftFailure::NotLeader(_)) => JoinAnswer::AskLeader(cluster, None),
        Err(failure) => JoinAnswer::Refused(failure.to_string()),
    }
}

/// A learner of the same name goes at once; a voter when the new one is promoted in its place.
async fn make_room(shared: &Shared, status: &RaftStatus, member: &Member) -> Result<(), String> {
    for (old, role) in status.configuration.named(&member.name).filter(|(old, _)| old.node != member.node) {
        let is_alive =
            old.node == shared.known().node || shared.heard.ago(old.node).is_some_and(|ago| ago < ALIVE);
        if is_alive {
            return Err(format!(
                "a node named {} with the id {} is alive: end it first, or give this one another name",
                old.name, old.node
            ));
        }
        if *role == Role::Learner {
            let engine = shared.bound_engine().map_err(|error| error.to_string())?;
            engine
                .remove(old.node, status.configuration.index)
                .await
                .map_err(|failure| failure.to_string())?;
        }
    }
    Ok(())
}

/// Whether that node is a member. Only the leader knows, and only after a majority has confirmed that it leads.
pub(super) async fn standing(shared: &Shared, node: NodeId, of: ClusterId) -> Standing {
    let Some(engine) = shared.engine().filter(|_| shared.known().phase.cluster() == Some(of)) else {
        return Standing::Unknown;
    };
    let is_member = |status: &RaftStatus| status.configuration.member(node).is_some();
    if is_member(&engine.status().borrow()) {
        return Standing::Unknown;
    }
    match confirmed_status(&**engine).await {
        Ok(status) if !is_member(&status) => Standing::Removed,
        _ => Standing::Unknown,
    }
}

/// What a leader knows, after a majority has confirmed that it leads. The status follows the engine at a distance: a new leader may have been
/// confirmed before its status shows the members that an earlier one added.
pub(super) async fn confirmed_status(engine: &dyn RaftAdapter) -> Result<RaftStatus, RaftFailure> {
    let confirmed = engine.confirm_leadership().await?;
    let mut status = engine.status();
    let shows = |status: &RaftStatus| status.applied_index >= confirmed || status.stopped.is_some();
    let shown = status.wait_for(shows).await.map(|status| status.clone());
    let stopped = |why: &str| RaftFailure::Stopped(why.to_owned());
    let shown = shown.map_err(|_| stopped("the engine ended"))?;
    shown.stopped.as_deref().map_or(Ok(()), |why| Err(stopped(why)))?;
    Ok(shown)
}

pub(super) fn leader_address(shared: &Shared, status: &RaftStatus) -> Option<String> {
    let (leader, _) = status.configuration.member(status.leader?)?;
    Some(shared.address_of(leader))
}
