//! Learners that keep up become voters.
//!
//! Runs at every node, and acts at the leader. A learner is promoted when it has been close behind the leader for a while; where a voter
//! of its name lost its disk, one change puts the new member in and takes the old one out. One change at a time, each on the
//! configuration that it was decided on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_deadman::boot_now;

use super::join::ALIVE;
use super::shared::Shared;
use crate::adapter::RaftStatus;
use crate::member::{Member, Role};
use crate::names::NodeId;

/// How often the learners are looked at, at the longest.
const INTERVAL: Duration = Duration::from_millis(500);
/// A learner that lacks fewer entries than this keeps up: some are always on their way.
const CLOSE_BEHIND: u64 = 128;

pub(super) async fn promote_learners(shared: Arc<Shared>) {
    let interval = INTERVAL.min(shared.config.promote_after / 2).max(Duration::from_millis(10));
    let mut since: BTreeMap<NodeId, Boot> = BTreeMap::new();
    loop {
        tokio::time::sleep(interval).await;
        let Some(engine) = shared.engine() else { continue };
        let status = engine.status().borrow().clone();
        let keeping_up = keeping_up(&shared, &status);
        since.retain(|node, _| keeping_up.iter().any(|member| member.node == *node));
        for member in keeping_up {
            let begun = *since.entry(member.node).or_insert_with(boot_now);
            if boot_now().since(begun) < shared.config.promote_after {
                continue;
            }
            let replaced = voter_to_replace(&status, &member);
            // It was not alive when the new one joined, and is back: whoever runs both has to end one.
            if replaced.is_some_and(|old| shared.heard.ago(old).is_some_and(|ago| ago < ALIVE)) {
                tracing::debug!(%member, "a learner is not promoted while the voter of its name is alive");
                continue;
            }
            match engine.promote(member.node, replaced, status.configuration.index).await {
                Ok(()) => tracing::info!(%member, "a learner has caught up and votes from now on"),
                Err(error) => tracing::debug!(%member, %error, "a learner could not be promoted"),
            }
            // The configuration is another now.
            break;
        }
    }
}

fn keeping_up(shared: &Shared, status: &RaftStatus) -> Vec<Member> {
    if !status.is_leader {
        return Vec::new();
    }
    let learners = status.configuration.members.iter().filter(|(_, role)| *role == Role::Learner);
    let keeps_up = |member: &&Member| {
        let matched = status.matched.iter().find(|(node, _)| *node == member.node).map(|(_, index)| *index);
        let is_close = matched.is_some_and(|index| status.last_index.saturating_sub(index) < CLOSE_BEHIND);
        is_close && shared.heard.ago(member.node).is_some_and(|ago| ago < ALIVE)
    };
    learners.map(|(member, _)| member).filter(keeps_up).cloned().collect()
}

pub(super) fn voter_to_replace(status: &RaftStatus, member: &Member) -> Option<NodeId> {
    let mut same_name = status.configuration.named(&member.name);
    let old = same_name.find(|(old, role)| old.node != member.node && *role == Role::Voter);
    old.map(|(old, _)| old.node)
}
