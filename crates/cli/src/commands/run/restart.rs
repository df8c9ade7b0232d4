//! `--restart`: a COMMAND that ended by itself is started again under the same leadership, after a pause that grows while it keeps
//! ending soon.

use std::time::Duration;

use clap::ValueEnum;

/// When a command that ended by itself is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Restart {
    /// Never: `bellwether` exits with the command's code.
    #[default]
    No,
    /// When it ended with another code than 0.
    OnFailure,
    /// Whatever it ended with.
    Always,
}

impl Restart {
    pub(super) fn after(self, code: u8) -> bool {
        match self {
            Restart::No => false,
            Restart::OnFailure => code != 0,
            Restart::Always => true,
        }
    }
}

/// The pauses between a command's end and its next start.
#[derive(Debug, Default)]
pub(super) struct RestartBackoff {
    in_a_row: u32,
}

impl RestartBackoff {
    const FIRST: Duration = Duration::from_millis(200);
    const LONGEST: Duration = Duration::from_secs(30);

    /// The next one, after a run of this length: one that lasted begins the row anew.
    pub(super) fn next(&mut self, ran: Duration) -> Duration {
        if ran >= RestartBackoff::LONGEST {
            self.in_a_row = 0;
        }
        let pause =
            RestartBackoff::FIRST.saturating_mul(1 << self.in_a_row.min(16)).min(RestartBackoff::LONGEST);
        self.in_a_row = self.in_a_row.saturating_add(1);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_begin_anew_after_a_run_that_lasted() {
        let mut pauses = RestartBackoff::default();
        let soon = Duration::from_millis(10);
        let millis: Vec<u128> = (0..9).map(|_| pauses.next(soon).as_millis()).collect();
        assert_eq!(millis, [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000]);
        assert_eq!(pauses.next(Duration::from_secs(60)), RestartBackoff::FIRST);
        (0..1_000).for_each(|_| assert!(pauses.next(soon) <= RestartBackoff::LONGEST));
    }
}
