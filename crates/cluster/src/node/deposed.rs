//! How long a node waits for the answer of a leader that it passed a request on to: not much longer than that leader leads.
//!
//! A leader that is stopped or cut off answers nothing, and its successor answers a second attempt at once.

use std::time::Duration;

use tokio::sync::watch;

use crate::adapter::RaftStatus;
use crate::names::NodeId;

/// A leader that was replaced while it runs answers within this time: it hands over on request, and gives up what it had under way.
const LAST_ANSWERS: Duration = Duration::from_millis(250);

/// Returns when this node has known for [`LAST_ANSWERS`] that `leader` no longer leads, or when its own engine has stopped.
pub(super) async fn deposed(leader: NodeId, mut status: watch::Receiver<RaftStatus>) {
    let is_deposed = |status: &RaftStatus| status.leader != Some(leader) || status.stopped.is_some();
    if status.wait_for(is_deposed).await.is_ok() {
        tokio::time::sleep(LAST_ANSWERS).await;
    }
}
