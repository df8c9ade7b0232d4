//! A kernel timer on the boot-time clock that is a file descriptor.

use bellwether_core::Boot;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// Readable from the instant on that it is set to.
#[derive(Debug)]
pub struct TimerFd(OwnedFd);

impl TimerFd {
    /// A timer that is not set, to be polled: reading it never blocks.
    ///
    /// # Errors
    /// When the process or the system is out of file descriptors.
    pub fn new() -> io::Result<TimerFd> {
        TimerFd::open(libc::TFD_NONBLOCK)
    }

    /// A timer that is not set, and that blocks whoever reads it until the instant.
    pub(crate) fn blocking() -> io::Result<TimerFd> {
        TimerFd::open(0)
    }

    fn open(flags: libc::c_int) -> io::Result<TimerFd> {
        // SAFETY: takes no pointers; the answer is checked before use.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_BOOTTIME, libc::TFD_CLOEXEC | flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was opened just now and nothing else knows of it.
        Ok(TimerFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sets it to this instant, or switches it off. Either makes it unreadable until then.
    pub fn set(&self, at: Option<Boot>) {
        let setting = once_at(at);
        // SAFETY: the descriptor is open, the setting is read during the call only, and no old one is asked for.
        let status = unsafe {
            let fd = self.0.as_raw_fd();
            libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &raw const setting, ptr::null_mut())
        };
        // It fails for bad arguments only, and there are none; a timer that is silently off would be worse.
        assert!(status == 0, "timerfd_settime refused {at:?}: {}", io::Error::last_os_error());
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What a kernel timer is set to: once at this instant of the boot-time clock, or never.
pub(crate) fn once_at(at: Option<Boot>) -> libc::itimerspec {
    // All zeroes would mean "off", so the instant of boot becomes the nanosecond after it.
    let nanos = at.map_or(0, |at| at.as_nanos().max(1));
    libc::itimerspec {
        it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: libc::timespec {
            // Below 2^64 / 10^9, so it fits even where it is signed; a 32-bit system fires too early, which is the safe side.
            tv_sec: (nanos / 1_000_000_000).try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: (nanos % 1_000_000_000) as _,
        },
    }
}
