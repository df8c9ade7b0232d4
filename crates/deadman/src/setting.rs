//! What the kernel's timers are set to.

use bellwether_core::Boot;

/// Once at this instant of the boot-time clock, or never.
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
