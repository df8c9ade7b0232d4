//! Waking up at an instant of the boot-time clock.
//!
//! The contract of both timers below, and the tests hold each to it: never early, at once for an instant that
//! has passed, never for [`Boot::FOREVER`], and a wait that is dropped half-way leaves nothing behind that
//! could end a later one.
//!
//! A timer is woken by whichever runtime it was made in. When that runtime is shut down the wait stays
//! pending; safety does not hang on it, since whoever believes in a deadline compares it with the clock.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod kernel;
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
mod polling;

use bellwether_core::Boot;
use std::io;

#[cfg(any(target_os = "linux", target_os = "android"))]
use kernel::Timer;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use polling::Timer;

/// An async timer on the boot-time clock, used again and again by one task.
///
/// On Linux it holds one file descriptor. One timer set to the earliest of many deadlines serves any number
/// of them; a timer for each would run into the limit on open files.
#[derive(Debug)]
pub struct BootTimer(Timer);

impl BootTimer {
    /// A timer that is not set.
    ///
    /// # Errors
    /// When the process or the system is out of file descriptors.
    ///
    /// # Panics
    /// Outside a tokio runtime, or in one without its I/O driver (without its time driver where the system has
    /// no boot-time timers).
    pub fn new() -> io::Result<BootTimer> {
        Timer::new().map(BootTimer)
    }

    /// Waits until the boot-time clock shows `deadline` or later.
    ///
    /// Cancel-safe: dropping the wait and waiting again, for the same instant or another, loses nothing, and
    /// waiting again for the same instant costs no system call.
    pub async fn until(&mut self, deadline: Boot) {
        self.0.until(deadline).await;
    }
}

#[cfg(test)]
mod tests;
