//! Whether this node is still a member.
//!
//! A node that was removed hears nothing any more: the leader no longer sends to it, and the entry that removed it may never have arrived.
//! Silence is no evidence, so a node without a leader asks. Only a leader that a majority has just confirmed can say that a node was
//! removed.

use std::sync::Arc;
use std::time::Duration;

use super::ask::Ask;
use super::members::is_ready;
use super::shared::Shared;
use crate::adapter::RaftStatus;
use crate::error::{ClusterError, ErrorKind};
use crate::formation::Phase;
use crate::node::StartMode;
use crate::protocol::{FormationAnswer, FormationRequest, Standing};

/// Without a leader for this long, a node asks whether it is still a member. Elections take less.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often a node that waits for its leader looks whether it was heard.
const LISTENING: Duration = Duration::from_millis(10);

/// Returns when this node is ready. One that was removed while it was down goes on under another id, which needs another start.
pub(super) async fn ready_or_removed(
    shared: &Arc<Shared>,
    ask: &dyn Ask,
    mode: StartMode,
) -> Result<(), ClusterError> {
    let engine = shared.bound_engine()?;
    let mut status = engine.status();
    let ready = async {
        loop {
            let now = status.borrow_and_update().clone();
            if let Some(why) = now.stopped {
                return Err(ClusterError::new(ErrorKind::Stopped, why));
            }
            if is_ready(shared, &now) {
                return Ok(());
            }
            // That the leader was heard is no change of the status.
            tokio::select! {
                changed = status.changed() => {
                    if changed.is_err() {
                        return Err(ClusterError::new(ErrorKind::Stopped, "the engine ended"));
                    }
                }
                () = tokio::time::sleep(LISTENING) => {}
            }
        }
    };
    let removed = async {
        loop {
            tokio::time::sleep(PATIENCE).await;
            super::addresses::learn(shared).await;
            if mode == StartMode::Restart && is_removed(shared, ask).await {
                return;
            }
        }
    };
    tokio::select! {
        ready = ready => ready,
        () = removed => {
            engine.shutdown().await;
            start_over(shared).await?;
            Err(ClusterError::new(ErrorKind::Removed, "this node was removed from its cluster"))
        }
    }
}

/// Returns when this node, which was ready, cannot go on.
pub(super) async fn stopped(shared: &Arc<Shared>, ask: &dyn Ask) -> ClusterError {
    let Ok(engine) = shared.bound_engine() else { return std::future::pending().await };
    let mut status = engine.status();
    let ended = async {
        match status.wait_for(|status| status.stopped.is_some()).await {
            Ok(status) => status.stopped.clone().unwrap_or_default(),
            Err(_) => "the engine ended".to_owned(),
        }
    };
    let removed = async {
        loop {
            tokio::time::sleep(PATIENCE).await;
            if !hears_leader(shared, &engine.status().borrow().clone()) && is_removed(shared, ask).await {
                return;
            }
        }
    };
    tokio::select! {
        why = ended => ClusterError::new(ErrorKind::Stopped, why),
        () = removed => removed_while_up(shared).await,
    }
}

/// An engine goes on believing in the last leader that it heard, even through a restart. So it is asked when that was.
pub(super) fn hears_leader(shared: &Shared, status: &RaftStatus) -> bool {
    let hears = |leader| shared.frames_of.ago(leader).is_some_and(|ago| ago < PATIENCE);
    status.is_leader || status.leader.is_some_and(hears)
}

async fn removed_while_up(shared: &Shared) -> ClusterError {
    if let Some(engine) = shared.engine() {
        engine.shutdown().await;
    }
    let sentence = "this node was removed from its cluster; started again, it joins under another id";
    match start_over(shared).await {
        Ok(()) => ClusterError::new(ErrorKind::Removed, sentence),
        Err(error) => error,
    }
}

/// The cluster id stays: a removed member never takes part in forming another cluster.
async fn start_over(shared: &Shared) -> Result<(), ClusterError> {
    shared.start_over(Phase::removed).await
}

async fn is_removed(shared: &Shared, ask: &dyn Ask) -> bool {
    let (known, name) = (shared.known(), shared.name());
    let Phase::Bound { cluster, .. } = known.phase else { return false };
    for address in others(shared) {
        let request = FormationRequest::Standing(known.node, cluster);
        match ask.formation(address, None, request).await {
            Ok(FormationAnswer::Standing(Standing::Removed)) => return true,
            Ok(_) => {}
            Err(failure) => {
                tracing::debug!(%name, %failure, "a peer could not be asked whether this node is a member")
            }
        }
    }
    false
}

/// Everybody that this node has heard of.
fn others(shared: &Shared) -> Vec<String> {
    let status = shared.engine().map(|engine| engine.status().borrow().clone()).unwrap_or_default();
    let own = shared.known().node;
    let members =
        status.configuration.members.iter().map(|(member, _)| member).filter(|member| member.node != own);
    let mut addresses: Vec<String> = members.map(|member| shared.address_of(member)).collect();
    addresses.extend(shared.book.all_but(shared.name()));
    addresses.sort();
    addresses.dedup();
    addresses
}
