//! A deadline that the kernel keeps.
//!
//! A timer on the boot-time clock that sends SIGKILL to the process that set it. Nothing in user space has to run for
//! it: not a thread, not a handler, not the process itself, which may be stopped or starved. What hangs on the process
//! (children with a parent-death signal, a PID namespace whose first process is such a child) goes with it.
//!
//! The process is killed with its files closed *before* its children hear of it, so this is the net under an orderly
//! end, not the orderly end.

use bellwether_core::Boot;
use std::io;

#[cfg(any(target_os = "linux", target_os = "android"))]
use kernel::KillTimer;

/// SIGKILL to this process at an instant of the boot-time clock, unless it is moved or called off.
///
/// Belongs to the process that made it: a forked child has none, and dropping its copy there does nothing.
#[derive(Debug)]
pub struct KernelDeadline(KillTimer);

impl KernelDeadline {
    /// A deadline that is not armed.
    ///
    /// # Errors
    /// In the first process of a PID namespace, where the kernel ignores such signals; when the system has no such
    /// timers, or no more of them for this user.
    pub fn new() -> io::Result<KernelDeadline> {
        if std::process::id() == 1 {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "process 1 ignores the kernel's deadline: fork first (leave_pid1)",
            ));
        }
        KillTimer::new().map(KernelDeadline)
    }

    /// Kills this process at `at`; at once if that has passed. Replaces what was armed before.
    pub fn arm(&mut self, at: Boot) {
        self.0.set(Some(at));
    }

    /// Calls it off.
    pub fn disarm(&mut self) {
        self.0.set(None);
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod kernel {
    use super::*;
    use crate::timerfd::once_at;
    use std::{mem, process, ptr};

    #[derive(Debug)]
    pub(super) struct KillTimer {
        id: libc::timer_t,
        /// Timers are not inherited, but their numbers are per process: a child must not delete its own by ours.
        owner: u32,
    }

    impl KillTimer {
        pub(super) fn new() -> io::Result<KillTimer> {
            // SAFETY: a `sigevent` is integers and a union of them, for which all zeroes is a value.
            let mut event: libc::sigevent = unsafe { mem::zeroed() };
            event.sigev_notify = libc::SIGEV_SIGNAL;
            event.sigev_signo = libc::SIGKILL;
            let mut id = ptr::null_mut();
            // SAFETY: reads one sigevent and writes one timer id, both valid for the call.
            let status = unsafe { libc::timer_create(libc::CLOCK_BOOTTIME, &raw mut event, &raw mut id) };
            if status != 0 {
                return Err(refusal(io::Error::last_os_error()));
            }
            Ok(KillTimer { id, owner: process::id() })
        }

        pub(super) fn set(&mut self, at: Option<Boot>) {
            assert!(self.owner == process::id(), "a forked child has no kernel deadline: make one");
            let setting = once_at(at);
            // SAFETY: the timer is this process's and not deleted; the setting is read during the call only, and no
            // old one is asked for.
            let status = unsafe {
                libc::timer_settime(self.id, libc::TIMER_ABSTIME, &raw const setting, ptr::null_mut())
            };
            // It fails for bad arguments only, and there are none; a deadline that is silently off would be worse.
            assert!(status == 0, "timer_settime refused {at:?}: {}", io::Error::last_os_error());
        }
    }

    fn refusal(error: io::Error) -> io::Error {
        let advice = match error.raw_os_error() {
            // The signal that a timer will send counts as pending from the start.
            Some(libc::EAGAIN) => "; raise the limit on pending signals (ulimit -i)",
            _ => "",
        };
        io::Error::new(error.kind(), format!("the kernel made no timer: {error}{advice}"))
    }

    impl Drop for KillTimer {
        fn drop(&mut self) {
            if self.owner == process::id() {
                // SAFETY: the timer is this process's, and nothing uses its id after this.
                unsafe { libc::timer_delete(self.id) };
            }
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[derive(Debug)]
enum KillTimer {}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl KillTimer {
    fn new() -> io::Result<KillTimer> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this system has no timers that kill a stopped process",
        ))
    }

    fn set(&mut self, _at: Option<Boot>) {
        match *self {}
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
