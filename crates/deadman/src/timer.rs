//! Waking up at an instant of the boot-time clock.
//!
//! The contract of both timers below, and the tests hold each to it: never early, at once for an instant that
//! has passed, never for [`Boot::FOREVER`], and a wait that is dropped half-way leaves nothing behind that
//! could end a later one.
//!
//! Safety does not hang on a timer: whoever believes in a deadline compares it with the clock.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod kernel;
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
mod polling;

use bellwether_core::Boot;
use std::io;

#[cfg(any(target_os = "linux", target_os = "android"))]
use kernel::SystemTimer;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use polling::SystemTimer;

/// An async timer on the boot-time clock, used again and again by one task.
///
/// On Linux all timers of a process share one file descriptor and one thread, which the first of them makes.
#[derive(Debug)]
pub struct BootTimer(SystemTimer);

impl BootTimer {
    /// A timer that is not set.
    ///
    /// # Errors
    /// When this is the first timer, and the process or the system is out of file descriptors or threads.
    pub fn new() -> io::Result<BootTimer> {
        SystemTimer::new().map(BootTimer)
    }

    /// Waits until the boot-time clock shows `deadline` or later.
    ///
    /// Cancel-safe: dropping the wait and waiting again, for the same instant or another, loses nothing, and
    /// waiting again for the same instant costs no system call.
    ///
    /// # Panics
    /// Where the system has no boot-time timers: outside a tokio runtime, or in one without its time driver.
    pub async fn until(&mut self, deadline: Boot) {
        self.0.until(deadline).await;
    }
}

#[cfg(test)]
mod tests;
