//! Every bound, in one place.

use std::ops::RangeInclusive;
use std::time::Duration;

/// How many candidates there may be: fewer than two never change who leads, and more than these only keep the machine busy.
pub const CANDIDATES: RangeInclusive<usize> = 2..=16;

/// How long a run may take. Its event lines are kept until the verdict: at a ttl of a second, a day of them is some hundred megabytes.
pub const LENGTH: RangeInclusive<Duration> = Duration::from_secs(5)..=Duration::from_secs(24 * 60 * 60);

/// How long the first leader may take. A store that has just been started may let a whole ttl pass first.
pub(crate) fn first_leader(ttl: Duration) -> Duration {
    10 * ttl + Duration::from_secs(30)
}

/// How long a candidate may take to leave once it was asked to, beyond what it gives its command.
pub(crate) const LEAVING: Duration = Duration::from_secs(20);

/// How long processes that were killed may take to be gone: the kernel needs a moment for each.
pub(crate) const GONE: Duration = Duration::from_secs(10);

/// How long a request to step down may take. It waits for the next leader, whom another fault may keep away.
pub(crate) const STEP_DOWN: Duration = Duration::from_secs(60);

/// How long the command that restarts a server may take.
pub(crate) const SERVER_RESTART: Duration = Duration::from_secs(60);

/// Complaints that are kept one by one; the others are counted.
pub(crate) const COMPLAINTS: usize = 100;

/// News from processes and files that may wait for the engine.
pub(crate) const NEWS: usize = 1_024;

/// What is read of a candidate's log when it ends without having been asked to.
pub(crate) const LOG_TAIL_BYTES: u64 = 4_096;

/// How often a witness writes. The checked write waits for the disk; a long run writes less often, so that its file keeps some megabytes.
pub(crate) fn write_interval(length: Duration) -> Duration {
    (length / 50_000).max(Duration::from_millis(25))
}
