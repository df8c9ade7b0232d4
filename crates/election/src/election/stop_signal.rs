//! Stopping by a signal of the caller's, once, in whichever runtime the election was started last.
//!
//! The task that waits for the signal ends with its runtime, but the signal does not: the handle keeps it, and each start sees to it that
//! a task waits. The task holds no handle, so that it keeps nobody alive.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bellwether_backend::lock;
use futures_util::FutureExt;
use futures_util::future::Shared;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Election, Handle};
use crate::Error;
use crate::driver::DriverCommand;

pub(crate) type StopWhen = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The signal, until it came.
pub(super) type StopSignal = Mutex<Option<Awaited>>;

pub(super) struct Awaited {
    signal: Shared<StopWhen>,
    waiting: Option<JoinHandle<()>>,
}

impl Election {
    pub(crate) fn set_stop_signal(&self, signal: StopWhen) {
        let signal = unless_it_panics(signal).shared();
        *lock(&self.0.stop_signal) = Some(Awaited { signal, waiting: None });
    }

    /// Starts, unless the signal comes first.
    pub(super) async fn unless_signalled(
        &self,
        start: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), Error> {
        let signal = lock(&self.0.stop_signal).as_ref().map(|awaited| awaited.signal.clone());
        let Some(signal) = signal else { return start.await };
        tokio::select! {
            biased;
            () = signal => {
                self.0.heed_stop_signal();
                Ok(())
            }
            started = start => started,
        }
    }

    /// Sees to it that a task waits for the signal, if there is one to wait for.
    pub(super) fn await_stop_signal(&self) {
        let mut slot = lock(&self.0.stop_signal);
        let Some(awaited) = slot.as_mut() else { return };
        if awaited.waiting.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let signal = awaited.signal.clone();
        let handle = Arc::downgrade(&self.0);
        let mut snapshot = self.0.shared.snapshot.subscribe();
        awaited.waiting = Some(tokio::spawn(async move {
            tokio::select! {
                () = signal => {
                    if let Some(handle) = handle.upgrade() {
                        handle.heed_stop_signal();
                    }
                }
                // Never true, so this ends when there is no election left.
                _ = snapshot.wait_for(|_| false) => {}
            }
        }));
    }
}

impl Handle {
    /// Stops, without waiting for the end. The signal counts once: a later start is not stopped by it.
    fn heed_stop_signal(&self) {
        if lock(&self.stop_signal).take().is_some() {
            let _ = self.tell(DriverCommand::Stop(oneshot::channel().0));
        }
    }
}

/// A future that belongs to a runtime which has ended, such as a timer, panics in another: that is no signal.
fn unless_it_panics(signal: StopWhen) -> StopWhen {
    Box::pin(async move {
        if AssertUnwindSafe(signal).catch_unwind().await.is_err() {
            tracing::error!("the future given to stop_when panicked, so no signal will come from it");
            std::future::pending::<()>().await;
        }
    })
}
