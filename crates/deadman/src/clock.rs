//! Reading the system's clocks.
//!
//! `is_leader()` reads the boot-time clock on every call, so the way there is one `clock_gettime`, answered
//! without entering the kernel where the system can (the vDSO on Linux): no lock, no allocation.

use bellwether_core::{Boot, Clock, Wall};

/// Whether the boot-time clock of this system runs on while the machine is suspended.
///
/// Linux and macOS: yes. Elsewhere the monotonic clock is all there is and it may stand still, so suspend
/// has to be ruled out by whoever runs candidates there.
pub const COUNTS_SUSPEND: bool =
    cfg!(any(target_os = "linux", target_os = "android", target_os = "macos", target_os = "ios"));

#[cfg(any(target_os = "linux", target_os = "android"))]
const BOOT_CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;

// Apple's monotonic clock counts sleep, which is what Linux calls boot time.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const BOOT_CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The clocks of the machine that this runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn boot(&self) -> Boot {
        boot_now()
    }

    #[allow(clippy::unnecessary_cast, reason = "both fields are narrower on 32-bit systems")]
    fn wall(&self) -> Wall {
        let time = read(libc::CLOCK_REALTIME);
        // Saturates in the year 2262, and a wall clock does not decide who leads.
        let seconds = (time.tv_sec as i64).saturating_mul(NANOS_PER_SECOND as i64);
        Wall::from_unix_nanos(seconds.saturating_add(time.tv_nsec as i64))
    }
}

/// The boot-time clock, now.
#[inline]
pub fn boot_now() -> Boot {
    let time = read(BOOT_CLOCK);
    Boot::from_nanos(time.tv_sec as u64 * NANOS_PER_SECOND + time.tv_nsec as u64)
}

#[inline]
fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to a place that is valid, exclusive and of that type.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if status != 0 {
        no_clock(clock);
    }
    time
}

/// A made-up time could make two leaders; no process can go on without its clock.
#[cold]
fn no_clock(clock: libc::clockid_t) -> ! {
    panic!("clock {clock} cannot be read ({}): is it filtered away?", std::io::Error::last_os_error());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_time_never_goes_back() {
        let mut last = boot_now();
        for _ in 0..10_000 {
            let now = SystemClock.boot();
            assert!(now >= last, "{now:?} after {last:?}");
            last = now;
        }
    }

    #[test]
    fn boot_time_is_never_behind_a_clock_that_stands_still_in_suspend() {
        let monotonic = read(libc::CLOCK_MONOTONIC);
        let monotonic =
            Boot::from_nanos(monotonic.tv_sec as u64 * NANOS_PER_SECOND + monotonic.tv_nsec as u64);
        assert!(boot_now() >= monotonic);
    }

    #[test]
    fn wall_time_is_that_of_this_century() {
        let (early, late) =
            (Wall::parse("2020-01-01T00:00:00Z").unwrap(), Wall::parse("2100-01-01T00:00:00Z").unwrap());
        let now = SystemClock.wall();
        assert!((early..late).contains(&now), "{now}");
    }
}
