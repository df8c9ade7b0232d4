//! The health gate's check: run in turns, in a task of its own; what it means is for the machine to decide.

use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc;

use crate::driver::{Command, Key};
use crate::shared::Shared;

/// A health check and how often to run it.
#[derive(Clone)]
pub(crate) struct Health {
    pub(crate) every: Duration,
    pub(crate) limit: Duration,
    pub(crate) check: Arc<dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>,
}

/// Runs the check again and again, and tells the driver, until this start of the candidate is over.
pub(crate) async fn watch(
    key: Key,
    health: Health,
    driver: mpsc::WeakUnboundedSender<Command>,
    shared: Weak<Shared>,
) {
    let mut over = pin!(gone(shared));
    loop {
        let check = AssertUnwindSafe(async { (health.check)().await }).catch_unwind();
        let healthy = tokio::select! {
            () = &mut over => return,
            result = tokio::time::timeout(health.limit, check) => matches!(result, Ok(Ok(true))),
        };
        match driver.upgrade() {
            Some(driver) if driver.send(Command::Health(key, healthy)).is_ok() => {}
            _ => return,
        }
        tokio::select! {
            () = &mut over => return,
            () = tokio::time::sleep(health.every) => {}
        }
    }
}

/// Waits until a candidate takes part no more.
async fn gone(shared: Weak<Shared>) {
    let Some(mut snapshot) = shared.upgrade().map(|shared| shared.snapshot.subscribe()) else { return };
    let _ = snapshot.wait_for(|now| !now.running).await;
}
