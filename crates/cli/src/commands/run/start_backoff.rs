//! After a start of COMMAND that failed: out of the election, longer each time, so that a node which cannot start anything does
//! not win again and again while others could work.

use std::time::Duration;

use bellwether::Election;
use bellwether_supervise::{StartError, Supervisor};

use crate::exit::Failure;

/// The longest time that a candidate stays out.
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// How often in a row COMMAND could not be started.
pub(super) struct StartBackoff {
    /// The first time that a candidate stays out: as long as a lease, so that every other candidate gets its chance.
    first: Duration,
    failures: u32,
}

impl StartBackoff {
    pub(super) fn new(ttl: Duration) -> StartBackoff {
        StartBackoff { first: ttl, failures: 0 }
    }

    /// COMMAND has been started.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Leaves the election, and returns to it after a while, once a rehearsal has succeeded.
    pub(super) async fn stay_out(
        &mut self,
        election: &Election,
        supervisor: &Supervisor,
        mut error: StartError,
    ) -> Result<(), Failure> {
        election.stop().await?;
        loop {
            let span = self.next();
            let shown = bellwether::duration::print(span);
            tracing::error!(%error, "the command cannot be started here; this candidate stays out of the election for {shown}");
            tokio::time::sleep(span).await;
            match supervisor.rehearse().await {
                Ok(_) => return Ok(election.start().await?),
                Err(again) => error = again,
            }
        }
    }

    fn next(&mut self) -> Duration {
        let span = self.first.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        span.min(LONGEST.max(self.first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_twice_as_long_up_to_a_limit_until_the_command_was_started() {
        let seconds = Duration::from_secs;
        let mut backoff = StartBackoff::new(seconds(15));
        let spans: Vec<_> = (0..6).map(|_| backoff.next()).collect();
        assert_eq!(spans, [15, 30, 60, 120, 240, 300].map(seconds));
        backoff.reset();
        assert_eq!(backoff.next(), seconds(15));
        let mut slow = StartBackoff::new(seconds(600));
        assert_eq!([slow.next(), slow.next()], [seconds(600); 2], "never less than a lease");
    }
}
