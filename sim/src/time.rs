//! True time: what an onlooker outside the world would measure, in nanoseconds from its beginning.
//!
//! Nobody inside the world can read it. Each machine has a clock of its own (see [`crate::clock`]).

use std::time::Duration;

/// An instant or a span of true time, in nanoseconds.
pub type Nanos = u64;

/// A millisecond.
pub const MILLI: Nanos = 1_000_000;
/// A second.
pub const SECOND: Nanos = 1_000_000_000;

/// A span as nanoseconds.
pub fn nanos(span: Duration) -> Nanos {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
