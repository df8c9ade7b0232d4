//! Pauses that double: between the end of a COMMAND and its next start (`--restart`), and after starts of it that failed.

use std::time::Duration;

/// How often something has failed in a row, and so how long to wait.
#[derive(Debug)]
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    in_a_row: u32,
}

impl Backoff {
    /// Between the end of a command and its next start.
    pub(super) fn of_restarts() -> Backoff {
        Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(30), in_a_row: 0 }
    }

    /// Out of the election after a start that failed: at first for as long as a lease, so that every other candidate gets its chance.
    pub(super) fn of_starts(ttl: Duration) -> Backoff {
        Backoff { first: ttl, longest: Duration::from_secs(5 * 60).max(ttl), in_a_row: 0 }
    }

    /// It has succeeded.
    pub(super) fn reset(&mut self) {
        self.in_a_row = 0;
    }

    pub(super) fn next(&mut self) -> Duration {
        let pause = self.first.saturating_mul(1 << self.in_a_row.min(16)).min(self.longest);
        self.in_a_row = self.in_a_row.saturating_add(1);
        pause
    }

    /// The next pause, after a run of this length: one that lasted begins the row anew.
    pub(super) fn next_after(&mut self, ran: Duration) -> Duration {
        if ran >= self.longest {
            self.reset();
        }
        self.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_begin_anew_after_a_run_that_lasted() {
        let mut pauses = Backoff::of_restarts();
        let soon = Duration::from_millis(10);
        let millis: Vec<u128> = (0..9).map(|_| pauses.next_after(soon).as_millis()).collect();
        assert_eq!(millis, [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000]);
        assert_eq!(pauses.next_after(Duration::from_secs(60)), pauses.first);
        (0..1_000).for_each(|_| assert!(pauses.next_after(soon) <= pauses.longest));
    }

    #[test]
    fn each_time_out_is_twice_as_long_up_to_a_limit_until_the_command_was_started() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::of_starts(seconds(15));
        let spans: Vec<_> = (0..6).map(|_| backoff.next()).collect();
        assert_eq!(spans, [15, 30, 60, 120, 240, 300].map(seconds));
        backoff.reset();
        assert_eq!(backoff.next(), seconds(15));
        let mut slow = Backoff::of_starts(seconds(600));
        assert_eq!([slow.next(), slow.next()], [seconds(600); 2], "never less than a lease");
    }
}
