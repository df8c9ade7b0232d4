//! The health gate's check: run in turns, in a task of its own; what it means is for the machine to decide.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bellwether_backend::Fut;
use futures_util::FutureExt;

use crate::driver::{DriverCommand, DriverLink};
use crate::shared::Shared;

/// How often a candidate's health is checked, and how many failures count.
///
/// ```
/// use std::time::Duration;
/// use bellwether_election::{Election, HealthCheck};
///
/// let check = HealthCheck::every(Duration::from_secs(5)).timeout(Duration::from_secs(1)).failures(3);
/// let builder = Election::builder("reports").health(check, || async { true });
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct HealthCheck {
    interval: Duration,
    timeout: Duration,
    failures: u32,
}

impl HealthCheck {
    /// Checks that often. A check may take as long as the interval, and the first that fails counts.
    pub fn every(interval: Duration) -> HealthCheck {
        HealthCheck { interval, timeout: interval, failures: 1 }
    }

    /// A check that takes longer has failed.
    pub fn timeout(self, timeout: Duration) -> HealthCheck {
        HealthCheck { timeout, ..self }
    }

    /// A candidate is unhealthy after this many failures in a row.
    pub fn failures(self, failures: u32) -> HealthCheck {
        HealthCheck { failures, ..self }
    }

    pub(crate) fn failures_max(&self) -> u32 {
        self.failures
    }
}

/// A health check and when to run it.
#[derive(Clone)]
pub(crate) struct Health {
    pub(crate) when: HealthCheck,
    pub(crate) check: Arc<dyn Fn() -> Fut<'static, bool> + Send + Sync>,
}

/// Runs the check again and again, and tells the driver, until this start of the candidate is over.
pub(crate) async fn watch(health: Health, driver: DriverLink, shared: Weak<Shared>) {
    let mut over = pin!(gone(shared));
    loop {
        let check = AssertUnwindSafe(async { (health.check)().await }).catch_unwind();
        let healthy = tokio::select! {
            () = &mut over => return,
            result = tokio::time::timeout(health.when.timeout, check) => matches!(result, Ok(Ok(true))),
        };
        if !driver.tell(DriverCommand::Health(healthy)) {
            return;
        }
        tokio::select! {
            () = &mut over => return,
            () = tokio::time::sleep(health.when.interval) => {}
        }
    }
}

/// Waits until a candidate takes part no more.
async fn gone(shared: Weak<Shared>) {
    let Some(mut snapshot) = shared.upgrade().map(|shared| shared.snapshot.subscribe()) else { return };
    let _ = snapshot.wait_for(|now| !now.running).await;
}
