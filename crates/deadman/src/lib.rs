//! Boot-time clock and timers.
