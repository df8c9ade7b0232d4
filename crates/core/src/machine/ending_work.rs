//! Work that was told to stop and has not ended.

use crate::{Epoch, Grant};

/// The leadership whose work is ending, and the grant to give back when it has ended.
#[derive(Clone, Debug, Default)]
pub(super) struct EndingWork {
    epoch: Option<Epoch>,
    owed: Option<Grant>,
}

impl EndingWork {
    /// The work of this leadership was told to stop.
    pub(super) fn begin(&mut self, epoch: Epoch) {
        self.epoch = Some(epoch);
    }

    pub(super) fn is_ending(&self) -> bool {
        self.epoch.is_some()
    }

    pub(super) fn epoch(&self) -> Option<Epoch> {
        self.epoch
    }

    /// The work of this leadership has ended: whether it was the one awaited.
    pub(super) fn ended(&mut self, epoch: Epoch) -> bool {
        self.epoch.take_if(|ending| *ending == epoch).is_some()
    }

    /// Gives this grant back when the work has ended. Of several, the latest counts: it replaced the others in the store.
    pub(super) fn owe(&mut self, grant: Grant) {
        if self.owed.as_ref().is_none_or(|owed| owed.epoch < grant.epoch) {
            self.owed = Some(grant);
        }
    }

    pub(super) fn take_owed(&mut self) -> Option<Grant> {
        self.owed.take()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Boot, Incarnation};

    fn e(number: u64) -> Epoch {
        Epoch::new(number).unwrap()
    }

    fn grant(epoch: u64) -> Grant {
        let (incarnation, ttl) = (Incarnation::from_bits(1), Duration::from_secs(1));
        Grant { epoch: e(epoch), incarnation, ttl, counted_from: Boot::default(), after_crash: false }
    }

    #[test]
    fn only_the_work_that_is_awaited_ends_the_wait() {
        let mut work = EndingWork::default();
        work.begin(e(2));
        assert!(!work.ended(e(1)) && work.is_ending());
        assert!(work.ended(e(2)) && !work.is_ending());
        assert!(!work.ended(e(2)), "reported twice");
    }

    #[test]
    fn of_several_grants_the_latest_is_given_back_once() {
        let mut work = EndingWork::default();
        for epoch in [3, 5, 4] {
            work.owe(grant(epoch));
        }
        assert_eq!(work.take_owed().map(|grant| grant.epoch), Some(e(5)));
        assert!(work.take_owed().is_none());
    }
}
