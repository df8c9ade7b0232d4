//! Systems without boot-time timers: ordinary sleeps, with a look at the clock in between.
//!
//! The runtime's timers may stand still in suspend, so no sleep is longer than [`LOOK_EVERY`]: that is how
//! late the timer can be after the machine wakes.

use crate::boot_now;
use bellwether_core::Boot;
use std::future;
use std::io;
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct SystemTimer;

impl SystemTimer {
    pub(super) fn new() -> io::Result<SystemTimer> {
        Ok(SystemTimer)
    }

    pub(super) async fn until(&mut self, deadline: Boot) {
        if deadline == Boot::FOREVER {
            return future::pending().await;
        }
        loop {
            let left = deadline.since(boot_now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK_EVERY)).await;
        }
    }
}
