//! Whether a node gives up the cluster that somebody named.

use super::{Phase, Refusal};
use crate::names::ClusterId;

/// Whether a node that was told to give up `cluster` puts its directory away; false where it has nothing of that cluster.
///
/// `led_by` is a peer that answered that it is in that cluster, and that the cluster has a leader. A cluster that lives must not be given up by
/// some of its nodes: they would form another one beside it. Peers that are silent, that are not in it, or that have no leader say nothing
/// against it.
///
/// # Errors
/// When the cluster lives. Also at a node without any state: told to give up a cluster, it forms another one, where a ledger forbids that
/// otherwise. A node that has come to another cluster since then has nothing to give up, and goes on.
pub fn give_up(phase: &Phase, cluster: ClusterId, led_by: Option<&str>) -> Result<bool, Refusal> {
    match (phase.cluster(), led_by) {
        (Some(other), _) if other != cluster => Ok(false),
        (_, Some(peer)) => Err(Refusal::StillRuns { cluster, peer: peer.to_owned() }),
        (own, None) => Ok(own.is_some()),
    }
}
