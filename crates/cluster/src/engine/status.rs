//! What the node knows, for everybody outside the engine.

use std::mem::take;

use openraft::async_runtime::watch::WatchReceiver;
use openraft::errors::Fatal;
use openraft::{RaftMetrics, ServerState};
use tokio::sync::watch;

use super::network::Addresses;
use super::types::{LogId, Raft, Types, configuration};
use crate::adapter::RaftStatus;
use crate::member::Configuration;
use crate::names::NodeId;

/// Keeps the status up to date, and the addresses, until the engine has stopped.
pub(super) async fn follow(
    raft: Raft,
    mut failure: watch::Receiver<Option<String>>,
    status: watch::Sender<RaftStatus>,
    addresses: Addresses,
) {
    let (mut configured, mut committed) = (None, None);
    let mut metrics = raft.metrics();
    // The engine ends with its last handle, and this task is none.
    drop(raft);
    loop {
        let latest = metrics.borrow_watched().membership_config.clone();
        if configured != *latest.log_id() {
            addresses.replace(latest.nodes().map(|(id, node)| node.member(*id)));
            configured = *latest.log_id();
        }
        let (now, members) = {
            let seen = metrics.borrow_watched();
            (current(&seen, failure.borrow().clone()), seen.committed_membership_config.clone())
        };
        let is_over = now.stopped.is_some();
        let is_changed = committed != Some(*members.log_id());
        committed = Some(*members.log_id());
        status.send_if_modified(|last| {
            // Made anew only when it changes: this runs every few entries.
            let before = take(&mut last.configuration);
            let is_news = *last != now;
            *last = now;
            last.configuration = if is_changed { configuration(&members) } else { before };
            is_news || is_changed
        });
        if is_over {
            return;
        }
        let gone = tokio::select! {
            changed = metrics.changed() => changed.is_err(),
            _ = failure.changed() => false,
        };
        if gone {
            status.send_modify(|last| stop(last, ENDED.to_owned()));
            return;
        }
    }
}

const ENDED: &str = "the node was shut down";

/// All but the configuration.
fn current(metrics: &RaftMetrics<Types>, failure: Option<String>) -> RaftStatus {
    let index = |id: &Option<LogId>| id.as_ref().map_or(0, |id| id.index);
    let others = metrics.replication.iter().flatten().filter(|(node, _)| **node != metrics.id);
    let mut status = RaftStatus {
        leader: metrics.current_leader.map(NodeId::from_random),
        is_leader: metrics.state == ServerState::Leader,
        term: metrics.current_term,
        last_index: metrics.last_log_index.unwrap_or(0),
        committed_index: index(&metrics.local_committed),
        applied_index: index(&metrics.last_applied),
        configuration: Configuration::default(),
        matched: others.map(|(node, matched)| (NodeId::from_random(*node), index(matched))).collect(),
        stopped: None,
    };
    let fatal = metrics.running_state.as_ref().err().map(reason);
    if let Some(why) = failure.or(fatal) {
        stop(&mut status, why);
    }
    status
}

/// Nobody leads by what a stopped node says.
fn stop(status: &mut RaftStatus, why: String) {
    status.leader = None;
    status.is_leader = false;
    status.stopped = Some(why);
}

/// Why the engine has stopped, in a sentence that says what to do.
pub(super) fn reason(fatal: &Fatal<Types>) -> String {
    match fatal {
        Fatal::Stopped => ENDED.to_owned(),
        Fatal::Panicked => {
            "the Raft engine panicked: start the node again, and report what it logged".to_owned()
        }
        Fatal::StorageError(error) => format!("{error}; mend the disk, then start the node again"),
    }
}
