//! Hooks: code that runs when leadership comes and goes, in a task of its own, so that it never delays a renewal.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::Fut;
use bellwether_core::{Boot, CandidateId};
use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};

use crate::driver::{DriverCommand, DriverLink};
use crate::event::What;
use crate::leadership::Leadership;
use crate::subscription::Events;

/// What a hook returns when it fails. It is reported as an `error` event and stops nothing.
///
/// ```
/// use bellwether_election::HookError;
///
/// fn write_marker() -> Result<(), HookError> {
///     std::fs::write("/nowhere/leader", "host-1")?;
///     Ok(())
/// }
///
/// assert!(write_marker().is_err());
/// ```
pub type HookError = Box<dyn std::error::Error + Send + Sync>;

/// How long a demotion hook may take where the deadline has already passed; then it is dropped.
pub(crate) const HOOK_MAX: Duration = Duration::from_secs(10);

/// Called when leadership comes and goes: promotion and demotion strictly in turn, never at the same time. News of
/// other leaders comes in order, too, but beside those two, so that it cannot hold up a release.
///
/// A promotion hook that is still running when the leadership ends is dropped before the demotion hook starts. A
/// leadership that was over before the promotion hook was called gets neither.
/// The release is written only after the demotion hook has ended, or when the deadline leaves no more time for it.
///
/// ```
/// use bellwether_election::{CandidateId, HookError, Hooks, Leadership};
///
/// struct Service;
///
/// impl Hooks for Service {
///     async fn on_become_leader(&self, leadership: Leadership) -> Result<(), HookError> {
///         println!("leading under epoch {}", leadership.epoch());
///         Ok(())
///     }
/// }
/// ```
#[expect(unused_variables, reason = "the default of an optional method ignores what it is given")]
pub trait Hooks: Send + Sync + 'static {
    /// This candidate leads now. A panic ends the leadership.
    fn on_become_leader(&self, leadership: Leadership) -> impl Future<Output = Result<(), HookError>> + Send {
        async { Ok(()) }
    }

    /// The leadership is over. Stop what was started.
    fn on_lose_leadership(
        &self,
        leadership: Leadership,
    ) -> impl Future<Output = Result<(), HookError>> + Send {
        async { Ok(()) }
    }

    /// Somebody else leads, or nobody does.
    fn on_leader_change(
        &self,
        leader: Option<CandidateId>,
    ) -> impl Future<Output = Result<(), HookError>> + Send {
        async { Ok(()) }
    }
}

/// [`Hooks`] of any type.
pub(crate) trait AnyHooks: Send + Sync + 'static {
    fn become_leader(&self, leadership: Leadership) -> Fut<'_, Result<(), HookError>>;
    fn lose_leadership(&self, leadership: Leadership) -> Fut<'_, Result<(), HookError>>;
    fn leader_change(&self, leader: Option<CandidateId>) -> Fut<'_, Result<(), HookError>>;
}

impl<H: Hooks> AnyHooks for H {
    fn become_leader(&self, leadership: Leadership) -> Fut<'_, Result<(), HookError>> {
        Box::pin(self.on_become_leader(leadership))
    }

    fn lose_leadership(&self, leadership: Leadership) -> Fut<'_, Result<(), HookError>> {
        Box::pin(self.on_lose_leadership(leadership))
    }

    fn leader_change(&self, leader: Option<CandidateId>) -> Fut<'_, Result<(), HookError>> {
        Box::pin(self.on_leader_change(leader))
    }
}

/// A call of a hook, in the order of what happened.
pub(crate) enum HookCall {
    Become(Leadership),
    Lose {
        leadership: Leadership,
        by: Boot,
        /// Ready, or dropped, when the caller's patience is over.
        cut: oneshot::Receiver<()>,
    },
}

/// Runs the hooks of one start of a candidate until nobody is left who could call one.
pub(crate) async fn run(
    hooks: Arc<dyn AnyHooks>,
    calls: mpsc::UnboundedReceiver<HookCall>,
    events: Events,
    driver: DriverLink,
) {
    // Side by side: a slow `on_leader_change` must not hold up a demotion, and with it a release.
    tokio::join!(turns(&*hooks, calls, &driver), changes(&*hooks, events, &driver));
}

/// Promotion and demotion, strictly in turn.
async fn turns(hooks: &dyn AnyHooks, mut calls: mpsc::UnboundedReceiver<HookCall>, driver: &DriverLink) {
    // Whether the promotion hook was called. A leadership that was over before that gets no demotion hook either.
    let mut promoted = false;
    while let Some(call) = calls.recv().await {
        match call {
            HookCall::Become(leadership) => {
                let hook = guarded(|| {
                    promoted = true;
                    hooks.become_leader(leadership.clone())
                });
                match leadership.during(hook).await {
                    Ok(HookEnd::Fine) | Err(_) => {}
                    Ok(HookEnd::Failed(said)) => failed(driver, "on_become_leader", &said),
                    Ok(HookEnd::Panicked) => {
                        driver.tell(DriverCommand::Panicked(leadership.epoch()));
                    }
                }
            }
            HookCall::Lose { leadership, by, cut } => {
                if std::mem::take(&mut promoted) {
                    let limit = by.since(leadership.time().boot()).max(HOOK_MAX);
                    let hook = guarded(|| hooks.lose_leadership(leadership.clone()));
                    let trouble = tokio::select! {
                        biased;
                        said = limited(limit, hook) => said,
                        _ = cut => Some("was cut off: the caller did not want to wait any longer".to_owned()),
                    };
                    if let Some(said) = trouble {
                        failed(driver, "on_lose_leadership", &said);
                    }
                }
                driver.tell(DriverCommand::HookEnded(leadership.epoch()));
            }
        }
    }
}

/// Other leaders, in order, until this start of the candidate has stopped.
async fn changes(hooks: &dyn AnyHooks, mut events: Events, driver: &DriverLink) {
    while let Some(event) = events.next().await {
        match event.what {
            What::LeaderChanged { leader, .. } => {
                let hook = guarded(|| hooks.leader_change(leader));
                if let Some(said) = limited(HOOK_MAX, hook).await {
                    failed(driver, "on_leader_change", &said);
                }
            }
            What::Stopped => return,
            _ => {}
        }
    }
}

fn failed(driver: &DriverLink, hook: &str, said: &str) {
    driver.tell(DriverCommand::HookFailed(format!("{hook}: {said}")));
}

/// Runs a hook, which is dropped after `limit`; what went wrong, in words.
async fn limited(limit: Duration, hook: impl Future<Output = HookEnd>) -> Option<String> {
    match tokio::time::timeout(limit, hook).await {
        Ok(HookEnd::Fine) => None,
        Ok(HookEnd::Failed(said)) => Some(said),
        Ok(HookEnd::Panicked) => Some("panicked".to_owned()),
        Err(_) => Some(format!("did not end within {limit:?} and was dropped")),
    }
}

enum HookEnd {
    Fine,
    Failed(String),
    Panicked,
}

/// Runs a hook; a panic in it, or in making its future, ends there.
async fn guarded<'a>(hook: impl FnOnce() -> Fut<'a, Result<(), HookError>>) -> HookEnd {
    match AssertUnwindSafe(async { hook().await }).catch_unwind().await {
        Ok(Ok(())) => HookEnd::Fine,
        Ok(Err(error)) => HookEnd::Failed(error.to_string()),
        Err(_) => HookEnd::Panicked,
    }
}
