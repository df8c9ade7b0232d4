//! No candidate asks without end: neither at once nor in a loop.

use bellwether_core::CALLS_MAX;

use super::{BrokenInvariant, Verdict};
use crate::time::{Nanos, SECOND};

const NAME: &str = "bounded calls";

/// Beside the calls that [`CALLS_MAX`] keeps in bounds, what was granted late is given back and a leader may be
/// asked to make room: each once per answer that allowed it.
const BESIDE: usize = 8;

/// Calls in a second that no candidate has a reason for. The shortest pause after a denial is five milliseconds, and
/// a claim may take three tries.
const PER_SECOND: u32 = 1_000;

/// How one candidate calls.
#[derive(Clone, Debug, Default)]
pub struct Quiet {
    since: Nanos,
    calls: u32,
}

impl Quiet {
    /// One more call, with so many unanswered.
    pub fn calls(&mut self, now: Nanos, unanswered: usize) -> Verdict {
        if unanswered > CALLS_MAX + BESIDE {
            return Err(BrokenInvariant::new(NAME, format!("{unanswered} calls are unanswered")));
        }
        if now >= self.since + SECOND {
            (self.since, self.calls) = (now, 0);
        }
        self.calls += 1;
        if self.calls > PER_SECOND {
            return Err(BrokenInvariant::new(NAME, format!("{} calls within a second", self.calls)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hot_loop_and_a_pile_are_found() {
        let mut quiet = Quiet::default();
        let looped = (0..2_000).try_for_each(|call| quiet.calls(call, 1));
        assert!(looped.is_err());
        assert!(Quiet::default().calls(0, CALLS_MAX + BESIDE + 1).is_err());
        let mut slow = Quiet::default();
        assert_eq!((0..2_000).try_for_each(|call| slow.calls(call * SECOND / 100, 1)), Ok(()));
    }
}
