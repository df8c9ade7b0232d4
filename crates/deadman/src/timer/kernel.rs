//! Linux: a `timerfd` on `CLOCK_BOOTTIME`, set to absolute instants.
//!
//! Absolute, because a span worked out from a clock reading would be late by however long the process was
//! stopped between the reading and the setting.

use crate::boot_now;
use crate::setting::once_at;
use bellwether_core::Boot;
use std::future;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

#[derive(Debug)]
pub(super) struct Timer {
    fd: AsyncFd<OwnedFd>,
    /// What the kernel was last told and has not been heard to reach.
    set_to: Option<Boot>,
}

impl Timer {
    pub(super) fn new() -> io::Result<Timer> {
        // SAFETY: takes no pointers; the answer is checked before use.
        let fd =
            unsafe { libc::timerfd_create(libc::CLOCK_BOOTTIME, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was opened just now and nothing else knows of it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: an `OwnedFd` stays open and the same until it is dropped, and the `AsyncFd` owns it until then.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE)? };
        Ok(Timer { fd, set_to: None })
    }

    pub(super) async fn until(&mut self, deadline: Boot) {
        if deadline == Boot::FOREVER {
            self.set(None);
            return future::pending().await;
        }
        while boot_now() < deadline {
            self.set(Some(deadline));
            self.expired().await;
        }
    }

    /// Tells the kernel, unless it knows; it thereby also forgets an expiry that nobody has read.
    fn set(&mut self, deadline: Option<Boot>) {
        if self.set_to == deadline {
            return;
        }
        // Where the setting is too early for lack of bits, the loop in `until` sets it again.
        let setting = once_at(deadline);
        // SAFETY: the descriptor is open, the setting is read during the call only, and no old one is asked for.
        let status = unsafe {
            let fd = self.fd.get_ref().as_raw_fd();
            libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &raw const setting, ptr::null_mut())
        };
        // It fails for bad arguments only, and there are none; a timer that is silently off would be worse.
        assert!(status == 0, "timerfd_settime refused {deadline:?}: {}", io::Error::last_os_error());
        self.set_to = deadline;
    }

    /// Waits until the kernel says that the instant has come, and takes note of it.
    async fn expired(&mut self) {
        loop {
            let Ok(mut ready) = self.fd.readable().await else {
                // The runtime is shutting down and will wake nobody any more.
                return future::pending().await;
            };
            let mut count = [0; 8];
            let read = ready.try_io(|fd| {
                // SAFETY: the kernel writes at most `len` bytes to a buffer valid and exclusive for that many.
                match unsafe { libc::read(fd.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) } {
                    ..0 => Err(io::Error::last_os_error()),
                    _ => Ok(()),
                }
            });
            match read {
                Ok(Ok(())) => break,
                // Readiness left over from an instant that was since replaced, or a signal during the read.
                Err(_would_block) => {}
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => panic!("a boot-time timer cannot be read: {error}"),
            }
        }
        self.set_to = None;
    }
}
