//! Looking at a node from its first moment on, also while its start goes on.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::members::is_ready;
use super::metrics::ClusterMetrics;
use super::shared::Shared;
use crate::adapter::RaftStatus;
use crate::formation::Phase;

/// Looks at a node, for those who watch over it: health checks, metrics, a service manager. It keeps nothing alive, and changes nothing.
///
/// Cloning looks at the same node. See [`Cluster::start_watched`](super::Cluster::start_watched).
#[derive(Clone, Default)]
pub struct NodeProbe(Arc<Mutex<Weak<Shared>>>);

impl NodeProbe {
    pub(super) fn attach(&self, shared: &Arc<Shared>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(shared);
    }

    fn shared(&self) -> Option<Arc<Shared>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Returns true once the Raft engine has answered, or at once while there is none yet: the node is being formed, or joins. False when it has
    /// stopped.
    pub async fn answers(&self) -> bool {
        let Some(shared) = self.shared() else { return true };
        match shared.engine() {
            None => true,
            Some(engine) => engine.answers().await.is_ok(),
        }
    }

    /// Whether a leader is heard, the node is a member, and has applied all that it knows to be committed.
    pub fn is_ready(&self) -> bool {
        self.shared().is_some_and(|shared| is_ready(&shared, &status(&shared)))
    }

    /// What a node that has not been ready waits for, in a sentence.
    pub fn waits_for(&self) -> String {
        self.shared().map_or_else(|| "the node has not begun".to_owned(), |shared| shared.waiting.sentence())
    }

    /// How far its formation is: `starting`, `unbound` (in no cluster), `consented` (invited into one), `bound` (in one), or `removed`.
    pub fn phase(&self) -> &'static str {
        let Some(shared) = self.shared() else { return NodeProbe::PHASES[0] };
        match shared.known().phase {
            Phase::Unbound { consent: None } => "unbound",
            Phase::Unbound { consent: Some(_) } => "consented",
            Phase::Bound { .. } => "bound",
            Phase::Removed { .. } => "removed",
        }
    }

    /// Every answer of [`NodeProbe::phase`].
    pub const PHASES: [&'static str; 5] = ["starting", "unbound", "consented", "bound", "removed"];

    /// What the engine knows; nothing before there is one.
    pub fn status(&self) -> RaftStatus {
        self.shared().map_or_else(RaftStatus::default, |shared| status(&shared))
    }

    /// What the node has counted.
    pub fn metrics(&self) -> ClusterMetrics {
        self.shared().map_or_else(ClusterMetrics::default, |shared| shared.counters.read())
    }
}

fn status(shared: &Shared) -> RaftStatus {
    shared.engine().map_or_else(RaftStatus::default, |engine| engine.status().borrow().clone())
}
