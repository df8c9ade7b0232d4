//! Admission: of very many elections that are entered together, a few claim at a time.
//!
//! Ten thousand claims at once are thirty thousand calls in one queue, in front of every renewal of those that lead already: the
//! last claims would time out before they were answered, and so would the first renewals. So a candidate that is entered while many
//! claims are under way waits for its turn before it begins, and none of its time-outs runs before that. This applies only where each
//! claim is a call of its own; a session claims many in one call.

use std::collections::VecDeque;
use std::time::Duration;

use bellwether_core::Boot;

use super::StartKey;

/// No more begin while this many claims are under way: enough to keep a distant store busy, and few enough not to delay renewals.
const CLAIMS_AT_ONCE: usize = 256;
/// When no claim is answered for this long, the store is away and nothing is gained by waiting: then all begin.
const PATIENCE: Duration = Duration::from_secs(1);

/// The candidates that wait for their turn.
#[derive(Default)]
pub(super) struct Admission {
    waiting: VecDeque<StartKey>,
    patience_ends: Boot,
}

impl Admission {
    /// Whether a candidate that is entered now has to wait, with this many claims under way.
    pub(super) fn is_crowded(&self, claims: usize) -> bool {
        claims >= CLAIMS_AT_ONCE || !self.waiting.is_empty()
    }

    pub(super) fn wait(&mut self, now: Boot, key: StartKey) {
        if self.waiting.is_empty() {
            self.patience_ends = now + PATIENCE;
        }
        self.waiting.push_back(key);
    }

    /// A claim was answered: the store is there.
    pub(super) fn answered(&mut self, now: Boot) {
        self.patience_ends = now + PATIENCE;
    }

    /// The next that may begin, with this many claims under way.
    pub(super) fn next(&mut self, now: Boot, claims: usize) -> Option<StartKey> {
        let may = claims < CLAIMS_AT_ONCE || now >= self.patience_ends;
        if may { self.waiting.pop_front() } else { None }
    }

    /// When to ask for the next at the latest.
    pub(super) fn due(&self) -> Boot {
        if self.waiting.is_empty() { Boot::FOREVER } else { self.patience_ends }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_wait_begin_in_turn_and_all_when_nothing_is_answered() {
        let mut admission = Admission::default();
        let now = Boot::default() + Duration::from_secs(10);
        assert!(!admission.is_crowded(CLAIMS_AT_ONCE - 1) && admission.is_crowded(CLAIMS_AT_ONCE));
        assert_eq!(admission.due(), Boot::FOREVER);
        (1..=4).for_each(|number| admission.wait(now, StartKey(number)));
        assert!(admission.is_crowded(0), "nobody overtakes those who wait");
        assert_eq!(admission.next(now, CLAIMS_AT_ONCE), None);
        assert_eq!(admission.next(now, CLAIMS_AT_ONCE - 1), Some(StartKey(1)));
        admission.answered(now + PATIENCE / 2);
        assert_eq!(admission.next(now + PATIENCE, CLAIMS_AT_ONCE), None);
        assert_eq!(admission.due(), now + PATIENCE / 2 + PATIENCE);
        let late = admission.due();
        assert_eq!(
            [2, 3, 4].map(|_| admission.next(late, CLAIMS_AT_ONCE)),
            [2, 3, 4].map(|n| Some(StartKey(n)))
        );
        assert!(admission.next(late, 0).is_none() && admission.due() == Boot::FOREVER);
    }
}
