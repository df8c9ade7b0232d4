//! Hooks: code that runs when leadership comes and goes, in a task of its own, so that it never delays a renewal.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::Fut;
use bellwether_core::{Boot, CandidateId, What};
use bellwether_deadman::boot_now;
use futures_util::FutureExt;
use tokio::sync::mpsc;

use crate::driver::{Command, Key};
use crate::leadership::Leadership;
use crate::subscription::Events;

/// What a hook returns when it fails. It is reported as an `error` event and stops nothing.
pub type HookError = Box<dyn std::error::Error + Send + Sync>;

/// How long a demotion hook may take where the deadline has already passed; then it is dropped.
pub(crate) const HOOK_MAX: Duration = Duration::from_secs(10);

/// Called when leadership comes and goes: promotion and demotion strictly in turn, never at the same time.
///
/// A promotion hook that is still running when the leadership ends is dropped before the demotion hook starts.
/// The release is written only after the demotion hook has ended, or when the deadline leaves no more time for it.
pub trait Hooks: Send + Sync + 'static {
    /// This candidate leads now. If it panics, the leadership is let go.
    fn on_become_leader(&self, leadership: Leadership) -> Fut<'_, Result<(), HookError>> {
        let _ = leadership;
        Box::pin(async { Ok(()) })
    }

    /// The leadership is over. Stop what was started.
    fn on_lose_leadership(&self, leadership: Leadership) -> Fut<'_, Result<(), HookError>> {
        let _ = leadership;
        Box::pin(async { Ok(()) })
    }

    /// Somebody else leads, or nobody does.
    fn on_leader_change(&self, leader: Option<CandidateId>) -> Fut<'_, Result<(), HookError>> {
        let _ = leader;
        Box::pin(async { Ok(()) })
    }
}

pub(crate) enum Job {
    Become(Leadership),
    Lose { leadership: Leadership, by: Boot },
}

/// Runs the hooks of one election until there is nobody left to send jobs.
pub(crate) async fn run(
    key: Key,
    hooks: Arc<dyn Hooks>,
    mut jobs: mpsc::UnboundedReceiver<Job>,
    mut events: Events,
    driver: mpsc::WeakUnboundedSender<Command>,
) {
    let tell = |command| {
        if let Some(driver) = driver.upgrade() {
            let _ = driver.send(command);
        }
    };
    loop {
        tokio::select! {
            biased;
            job = jobs.recv() => match job {
                None => return,
                Some(Job::Become(leadership)) => {
                    let hook = guarded(|| hooks.on_become_leader(leadership.clone()));
                    let outcome = tokio::select! {
                        biased;
                        _ = leadership.lost() => Outcome::Fine,
                        outcome = hook => outcome,
                    };
                    match outcome {
                        Outcome::Fine => {}
                        Outcome::Failed(said) => tell(Command::HookFailed(key, format!("on_become_leader: {said}"))),
                        Outcome::Panicked => tell(Command::Panicked(key, leadership.epoch())),
                    }
                }
                Some(Job::Lose { leadership, by }) => {
                    let limit = by.since(boot_now()).max(HOOK_MAX);
                    let hook = guarded(|| hooks.on_lose_leadership(leadership.clone()));
                    let failed = match tokio::time::timeout(limit, hook).await {
                        Ok(Outcome::Fine) => None,
                        Ok(Outcome::Failed(said)) => Some(said),
                        Ok(Outcome::Panicked) => Some("panicked".to_owned()),
                        Err(_) => Some(format!("did not end within {limit:?} and was dropped")),
                    };
                    if let Some(said) = failed {
                        tell(Command::HookFailed(key, format!("on_lose_leadership: {said}")));
                    }
                    tell(Command::HookEnded(key, leadership.epoch()));
                }
            },
            event = events.next() => {
                let Some(event) = event else { continue };
                let What::LeaderChanged { leader } = event.what else { continue };
                let hook = guarded(|| hooks.on_leader_change(leader));
                let failed = match tokio::time::timeout(HOOK_MAX, hook).await {
                    Ok(Outcome::Fine) => None,
                    Ok(Outcome::Failed(said)) => Some(said),
                    Ok(Outcome::Panicked) => Some("panicked".to_owned()),
                    Err(_) => Some(format!("did not end within {HOOK_MAX:?} and was dropped")),
                };
                if let Some(said) = failed {
                    tell(Command::HookFailed(key, format!("on_leader_change: {said}")));
                }
            }
        }
    }
}

enum Outcome {
    Fine,
    Failed(String),
    Panicked,
}

/// Runs a hook; a panic in it, or in making its future, ends there.
async fn guarded<'a>(hook: impl FnOnce() -> Fut<'a, Result<(), HookError>>) -> Outcome {
    match AssertUnwindSafe(async { hook().await }).catch_unwind().await {
        Ok(Ok(())) => Outcome::Fine,
        Ok(Err(error)) => Outcome::Failed(error.to_string()),
        Err(_) => Outcome::Panicked,
    }
}
