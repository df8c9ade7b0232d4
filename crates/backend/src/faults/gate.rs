//! Where calls are held back until a test opens the gate.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// A gate that nobody opens does so by itself after this long, so that a failed test leaves nothing hanging.
pub const GATE_MAX: Duration = Duration::from_secs(60);

/// A gate, closed at first. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate {
    state: Arc<watch::Sender<GateState>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct GateState {
    open: bool,
    arrived: usize,
    passed: usize,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate::new()
    }
}

impl Gate {
    /// Closed.
    pub fn new() -> Gate {
        Gate { state: Arc::new(watch::Sender::new(GateState::default())) }
    }

    /// Lets everything through that stands here or will.
    pub fn open(&self) {
        self.state.send_modify(|state| state.open = true);
    }

    /// Until a call stands here, or has stood here.
    pub async fn reached(&self) {
        self.until(|state| state.arrived > 0).await;
    }

    /// Until a call that stood here is done.
    pub async fn done(&self) {
        self.until(|state| state.passed > 0).await;
    }

    pub(super) async fn stand(&self) {
        self.state.send_modify(|state| state.arrived += 1);
        // Open or overdue: the call goes on either way.
        let _ = tokio::time::timeout(GATE_MAX, self.until(|state| state.open)).await;
    }

    pub(super) fn passed(&self) {
        self.state.send_modify(|state| state.passed += 1);
    }

    async fn until(&self, condition: impl Fn(&GateState) -> bool) {
        // The sender is ours, so the channel cannot close while we wait.
        let _ = self.state.subscribe().wait_for(|state| condition(state)).await;
    }
}
