//! Who may be handled now: requests of one epoch side by side, and a later epoch after all of an earlier one.
//!
//! ```text
//!  of an earlier epoch than the latest that has asked ──▶ fenced
//!  of the settled epoch ────────────────────────────────▶ handled
//!  of a later one ──▶ it is the latest from now on ──▶ wait for those being handled ──▶ store ──▶ settled
//! ```
//!
//! Owns the counts of one process. The store is asked once for each epoch, and before the first request after a start, so what it remembers
//! counts. A request that is dropped at any point gives up its place.

use std::sync::{Arc, Mutex, PoisonError};

use bellwether_core::Epoch;
use tokio::sync::Notify;

use super::store::EpochStore;
use crate::{FenceError, Fenced};

pub(super) struct Gate {
    store: Box<dyn EpochStore>,
    state: Mutex<State>,
    /// Something has changed for those who wait.
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// The latest epoch that has asked, or that the store knew of. Nothing earlier begins.
    latest: Option<Epoch>,
    /// The epoch that the store keeps for certain; its requests are handled while it is the latest.
    settled: Option<Epoch>,
    /// Requests of the settled epoch that are being handled.
    handling: usize,
    /// Somebody is at the store.
    storing: bool,
}

/// The right of a request to have effects, held until its handler has answered. A handler that leaves work running keeps a clone until that
/// is over, and no later epoch begins before.
#[derive(Clone)]
pub struct Permit {
    epoch: Epoch,
    _place: Arc<Place>,
}

impl Permit {
    /// The epoch of the request.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }
}

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Permit").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// One request that is being handled.
struct Place(Arc<Gate>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.with(|state| state.handling -= 1);
    }
}

/// The only one at the store.
struct Turn<'a>(&'a Gate);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.with(|state| state.storing = false);
    }
}

enum Step<'a> {
    Handle,
    Fenced(Fenced),
    Store(Turn<'a>),
    Wait,
}

impl Gate {
    pub(super) fn new(store: Box<dyn EpochStore>) -> Gate {
        Gate { store, state: Mutex::default(), changed: Notify::new() }
    }

    /// Waits until a request of this epoch may be handled, without a bound of its own.
    pub(super) async fn enter(self: &Arc<Gate>, epoch: Epoch) -> Result<Permit, FenceError> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Before the look, or what changes after it is missed.
            changed.as_mut().enable();
            match self.step(epoch) {
                Step::Handle => return Ok(Permit { epoch, _place: Arc::new(Place(Arc::clone(self))) }),
                Step::Fenced(fenced) => return Err(fenced.into()),
                Step::Wait => changed.await,
                Step::Store(turn) => {
                    let stored = self.store.raise(epoch).await;
                    self.stored(epoch, &stored);
                    drop(turn);
                    stored?;
                }
            }
        }
    }

    fn step(&self, epoch: Epoch) -> Step<'_> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(latest) = state.latest.filter(|latest| epoch < *latest) {
            return Step::Fenced(Fenced { mine: epoch, latest });
        }
        if state.settled == Some(epoch) {
            state.handling += 1;
            return Step::Handle;
        }
        state.latest = Some(epoch);
        if state.handling > 0 || state.storing {
            return Step::Wait;
        }
        state.storing = true;
        Step::Store(Turn(self))
    }

    fn stored(&self, epoch: Epoch, result: &Result<(), FenceError>) {
        self.with(|state| match result {
            Ok(()) => state.settled = Some(epoch),
            Err(FenceError::Fenced(fenced)) => state.latest = state.latest.max(Some(fenced.latest)),
            // Those of this epoch ask the store again.
            Err(FenceError::Unknown(_) | FenceError::Failed(_)) => {}
        });
    }

    fn with(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_waiters();
    }
}
