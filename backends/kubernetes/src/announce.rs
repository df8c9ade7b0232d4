//! Who leads, told to the cluster beyond the Lease: a label on the leader's pod, and the leader's address. Both are options.
//!
//! ```text
//!  before the first claim ─ remove the own label, which an earlier start of this pod may have left
//!  promoted ─ remove the predecessor's label, then set the own; publish the address
//!  ended    ─ remove the own label; withdraw the address, if it is still ours
//! ```
//!
//! Owns the order: for each election one thing is told at a time, and a leadership that has ended is told no more. Nothing waits
//! for it but the end of the process, for a bounded time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether_backend::Past;
use bellwether_core::{CandidateId, ElectionName, Epoch, StoreError};

use crate::api::Api;
use crate::leader_address::LeaderAddress;
use crate::pod_label;

/// For one call.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);
/// Between tries to tell of a leadership that lasts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(8));

pub(crate) struct Announcer {
    api: Arc<Api>,
    /// The pod that carries a label while this process leads.
    pod: Option<String>,
    address: Option<LeaderAddress>,
    elections: Mutex<BTreeMap<ElectionName, Arc<Announced>>>,
}

/// What was told of an election.
#[derive(Default)]
struct Announced {
    state: Mutex<State>,
    /// One thing at a time.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    leading: Option<Epoch>,
    /// The pod that led before, as the Lease named it when it was claimed.
    predecessor: Option<String>,
    /// The own pod is known to have no label.
    is_unlabelled: bool,
}

impl Announced {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Announcer {
    /// `None` where nothing is to be told.
    pub(crate) fn new(
        api: Arc<Api>,
        pod: Option<String>,
        address: Option<LeaderAddress>,
    ) -> Option<Arc<Announcer>> {
        let told = pod.is_some() || address.is_some();
        told.then(|| Arc::new(Announcer { api, pod, address, elections: Mutex::default() }))
    }

    /// The pod to name in the Lease, for its successor.
    pub(crate) fn pod(&self) -> Option<&str> {
        self.pod.as_deref()
    }

    /// A candidate is about to claim.
    pub(crate) fn candidate(self: &Arc<Self>, on: &ElectionName) {
        let Some(pod) = self.pod.clone() else { return };
        let announced = self.of(on);
        {
            let mut state = announced.state();
            if state.is_unlabelled || state.leading.is_some() {
                return;
            }
            state.is_unlabelled = true;
        }
        let (announcer, on) = (Arc::clone(self), on.clone());
        tokio::spawn(async move {
            let _turn = announced.turn.lock().await;
            if announced.state().leading.is_none() {
                announcer.unlabel(&on, &announced, &pod).await;
            }
        });
    }

    /// A claim was written over a Lease that names this pod as the leader's.
    pub(crate) fn claimed(&self, on: &ElectionName, predecessor: Option<&str>) {
        self.of(on).state().predecessor = predecessor.map(str::to_owned);
    }

    /// A leadership has begun or ended.
    pub(crate) async fn announce(self: &Arc<Self>, on: &ElectionName, past: &Past) {
        let announced = self.of(on);
        if past.until.is_some() {
            return self.withdraw(on, &announced, past.epoch).await;
        }
        announced.state().leading = Some(past.epoch);
        let (announcer, on, epoch, id) = (Arc::clone(self), on.clone(), past.epoch, past.id.clone());
        tokio::spawn(async move {
            let mut pause = PAUSES.0;
            while let Err(error) = announcer.publish(&on, &announced, epoch, &id).await {
                if !error.is_retryable() {
                    tracing::warn!(%error, election = %on, "the cluster is not told who leads; elections go on without");
                    return;
                }
                tracing::debug!(%error, election = %on, "the cluster is not told who leads; trying again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
            }
        });
    }

    async fn publish(
        &self,
        on: &ElectionName,
        announced: &Announced,
        epoch: Epoch,
        id: &CandidateId,
    ) -> Result<(), StoreError> {
        let _turn = announced.turn.lock().await;
        if announced.state().leading != Some(epoch) {
            return Ok(());
        }
        // Each by itself: who may not write the one may well write the other.
        let published = match &self.address {
            Some(address) => address.publish(&self.api, on, epoch, id).await,
            None => Ok(()),
        };
        published.and(self.label(on, announced).await)
    }

    /// The predecessor's label goes first, so that never both have one.
    async fn label(&self, on: &ElectionName, announced: &Announced) -> Result<(), StoreError> {
        let Some(pod) = &self.pod else { return Ok(()) };
        let before = announced.state().predecessor.clone();
        if let Some(before) = before.filter(|before| before != pod) {
            pod_label::set(&self.api, on, &before, false).await?;
        }
        announced.state().is_unlabelled = false;
        pod_label::set(&self.api, on, pod, true).await
    }

    async fn withdraw(&self, on: &ElectionName, announced: &Announced, epoch: Epoch) {
        {
            let mut state = announced.state();
            state.leading = state.leading.filter(|leading| *leading != epoch);
        }
        let _turn = announced.turn.lock().await;
        if announced.state().leading.is_some() {
            return;
        }
        if let Some(address) = &self.address
            && let Err(error) = address.withdraw(&self.api, on, epoch).await
        {
            tracing::debug!(%error, election = %on, "the address of a leader that was is still published");
            if error.is_retryable() {
                // The server does not answer. The process may be waiting to end, and the label waits for the next claim.
                return;
            }
        }
        if let Some(pod) = &self.pod {
            self.unlabel(on, announced, pod).await;
        }
    }

    /// What fails is tried again before the next claim.
    async fn unlabel(&self, on: &ElectionName, announced: &Announced, pod: &str) {
        let removed = pod_label::set(&self.api, on, pod, false).await;
        let is_final = |error: &StoreError| !error.is_retryable();
        announced.state().is_unlabelled = removed.as_ref().err().is_none_or(is_final);
        if let Err(error) = removed {
            tracing::debug!(%error, election = %on, "this pod may still carry the label of a leader");
        }
    }

    fn of(&self, on: &ElectionName) -> Arc<Announced> {
        let mut elections = self.elections.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(elections.entry(on.clone()).or_default())
    }
}
