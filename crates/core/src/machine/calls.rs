//! Calls to the store under way: their numbers, and how many there may be.

use super::{Call, Core};

/// Most calls of one election that may be unanswered at once. A store that swallows calls must not be fed
/// more of them, nor may they pile up here.
pub const CALLS_MAX: usize = 16;

impl Core {
    pub(super) fn call(&mut self) -> Call {
        self.last_call += 1;
        let call = Call(self.last_call);
        self.unanswered.insert(call);
        call
    }

    pub(super) fn answered(&mut self, call: Call) {
        let was_full = self.is_full();
        if self.unanswered.remove(&call) && was_full {
            // The store is back, and there is room for a call: no need to wait for the end of the back-off.
            self.wake();
        }
    }

    /// Whether the store owes so many answers that nothing more is asked of it.
    pub(super) fn is_full(&self) -> bool {
        self.unanswered.len() >= CALLS_MAX
    }
}
