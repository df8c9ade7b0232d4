//! Before a cluster is given up, the peers are asked whether it still runs.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use super::ask::Ask;
use super::shared::{Shared, blocking, draw_node_id};
use super::{NodeParts, removed};
use crate::config::Config;
use crate::directory::DataDirectory;
use crate::error::{ClusterError, ErrorKind};
use crate::formation::{Phase, give_up};
use crate::names::ClusterId;
use crate::protocol::{FormationAnswer, FormationRequest};

/// For the peers to be found: longer than any of our own resolvers takes.
const RESOLVE_LIMIT: Duration = Duration::from_secs(10);

/// Puts the directory away, if the settings name its cluster and nobody says that it still runs.
pub(super) async fn give_up_if_told(
    directory: DataDirectory,
    config: &Config,
    parts: &NodeParts,
    ask: &dyn Ask,
) -> Result<DataDirectory, ClusterError> {
    let Some(cluster) = config.force_new_cluster else { return Ok(directory) };
    let phase = directory.identity().phase.clone();
    let refused =
        |refusal: crate::formation::Refusal| ClusterError::new(ErrorKind::Refused, refusal.to_string());
    // A node that is in another cluster by now has nothing to ask.
    let led_by = match phase.cluster() {
        Some(other) if other != cluster => None,
        _ => led_by(config, parts, ask, cluster).await,
    };
    if !give_up(&phase, cluster, led_by.as_deref()).map_err(refused)? {
        return Ok(directory);
    }
    tracing::warn!("this node gives up cluster {cluster}, and keeps its old state in archive/");
    let mut directory = directory;
    blocking(move || directory.start_over(draw_node_id(), Phase::FRESH).map(|()| directory)).await
}

/// A peer that says that it is in that cluster, and that it has a leader. Silence says nothing.
async fn led_by(config: &Config, parts: &NodeParts, ask: &dyn Ask, cluster: ClusterId) -> Option<String> {
    let peers = match timeout(RESOLVE_LIMIT, parts.resolver.resolve()).await {
        Ok(Ok(peers)) => peers,
        Ok(Err(error)) => {
            tracing::warn!(%error, "nobody can be asked whether cluster {cluster} still runs");
            return None;
        }
        Err(_) => {
            tracing::warn!(
                "nobody can be asked whether cluster {cluster} still runs: no peer was found in time"
            );
            return None;
        }
    };
    let others = peers.into_iter().filter(|peer| peer.id != config.name);
    let asked = others.map(|peer| async move {
        let answer = ask.formation(peer.address, None, FormationRequest::IsLed(cluster)).await;
        matches!(answer, Ok(FormationAnswer::Led(true))).then(|| peer.id.to_string())
    });
    join_all(asked).await.into_iter().flatten().next()
}

/// Whether this node is in that cluster, and the cluster has a leader: here, if a majority confirms it, or one that was heard just now.
pub(super) async fn is_led(shared: &Shared, cluster: ClusterId) -> bool {
    let Some(engine) = shared.engine().filter(|_| shared.known().phase.cluster() == Some(cluster)) else {
        return false;
    };
    let status = engine.status().borrow().clone();
    match status.is_leader {
        true => engine.confirm_leadership().await.is_ok(),
        false => removed::hears_leader(shared, &status),
    }
}
