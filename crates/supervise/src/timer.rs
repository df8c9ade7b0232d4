//! An alarm of one's own: the boot-time clock, absolute, as something to poll.

use bellwether_core::Boot;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Readable from the instant on that it is set to.
pub(crate) struct Timer(OwnedFd);

impl Timer {
    pub(crate) fn new() -> io::Result<Timer> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Timer(rustix::time::timerfd_create(TimerfdClockId::Boottime, flags)?))
    }

    /// Setting it also forgets what it had reached before.
    pub(crate) fn set(&self, at: Option<Boot>) {
        // All zeroes would mean "off", so the instant of boot becomes the nanosecond after it.
        let nanos = at.map_or(0, |at| at.as_nanos().clamp(1, i64::MAX as u64));
        let setting = Itimerspec { it_interval: timespec(0), it_value: timespec(nanos) };
        let set = rustix::time::timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &setting);
        assert!(set.is_ok(), "timerfd_settime refused {at:?}: {set:?}");
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn timespec(nanos: u64) -> Timespec {
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as _ }
}
