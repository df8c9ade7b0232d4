//! Calls to the store: their numbers, and how many may be unanswered.

use std::collections::BTreeSet;

use super::{Call, Core, Output, StoreCall};
use crate::Boot;

/// The most calls of one election that may be unanswered at once. A store that does not answer gets no more calls, and calls do
/// not pile up here.
pub const CALLS_MAX: usize = 16;

/// The calls that have not been answered.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenCalls {
    last: u64,
    unanswered: BTreeSet<Call>,
}

impl OpenCalls {
    /// Numbers a new call.
    pub(super) fn open(&mut self) -> Call {
        self.last += 1;
        let call = Call(self.last);
        self.unanswered.insert(call);
        call
    }

    /// A call was answered: whether it was this call that kept others from being made.
    pub(super) fn answered(&mut self, call: Call) -> bool {
        let was_full = self.is_full();
        self.unanswered.remove(&call) && was_full
    }

    /// Whether the store owes so many answers that it gets no more calls.
    pub(super) fn is_full(&self) -> bool {
        self.count() >= CALLS_MAX
    }

    pub(super) fn count(&self) -> usize {
        self.unanswered.len()
    }

    /// The last call that was made.
    pub(super) fn last(&self) -> Call {
        Call(self.last)
    }
}

/// A call that has not been answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) call: Call,
    /// From then on its outcome counts as unknown.
    pub(super) expires: Boot,
}

impl Pending {
    pub(super) fn is(&self, call: Call) -> bool {
        self.call == call
    }
}

impl Core {
    /// Calls the store.
    pub(super) fn call(&mut self, what: StoreCall) -> Pending {
        let call = self.calls.open();
        self.outputs.push_back(Output::Call(call, what));
        Pending { call, expires: self.now + self.settings.timing().call_timeout() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_an_answer_counts_once() {
        let mut calls = OpenCalls::default();
        let first = calls.open();
        assert_eq!((calls.open(), calls.last()), (Call(first.0 + 1), Call(first.0 + 1)));
        assert!(!calls.answered(first) && !calls.answered(first));
        assert_eq!(calls.count(), 1);
    }

    #[test]
    fn only_the_answer_that_ends_a_full_house_makes_room() {
        let mut calls = OpenCalls::default();
        let open: Vec<Call> = (0..CALLS_MAX).map(|_| calls.open()).collect();
        assert!(calls.is_full());
        assert!(!calls.answered(Call(99)), "a call that was never made");
        assert!(calls.answered(open[3]));
        assert!(!calls.is_full());
        assert!(!calls.answered(open[4]), "there was room already");
    }
}
