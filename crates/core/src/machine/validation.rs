//! Validation: observing the record while leading, to learn of a loss sooner than by a renewal.

use super::calls::Pending;
use super::releasing::Then;
use super::state::State;
use super::{Call, Core, StoreCall};
use crate::{Boot, CoreEvent, Reason, Seen, StoreError};

/// With this many calls unanswered no validation begins: validations that hang must leave room for renewals, which keep the lead.
const UNANSWERED_MAX: usize = super::CALLS_MAX / 2;

#[derive(Clone, Debug)]
pub(super) enum Validation {
    Off,
    Due(Boot),
    UnderWay(Pending),
}

impl Validation {
    /// When to begin the next, or to give up the one under way.
    pub(super) fn due(&self, calls_unanswered: usize) -> Boot {
        match self {
            Validation::Due(at) if calls_unanswered < UNANSWERED_MAX => *at,
            Validation::UnderWay(pending) => pending.expires,
            Validation::Off | Validation::Due(_) => Boot::FOREVER,
        }
    }

    fn is(&self, call: Call) -> bool {
        matches!(self, Validation::UnderWay(pending) if pending.is(call))
    }
}

impl Core {
    pub(super) fn next_validation(&self) -> Validation {
        match self.settings.options().validation {
            Some(every) => Validation::Due(self.now + every),
            None => Validation::Off,
        }
    }

    pub(super) fn validate_now(&mut self) {
        let free =
            matches!(&self.state, State::Leader(l) if !matches!(l.validation, Validation::UnderWay(_)));
        // The program may ask as often as it likes.
        if !free || self.calls.count() >= UNANSWERED_MAX {
            return;
        }
        let pending = self.call(StoreCall::Observe);
        if let State::Leader(leading) = &mut self.state {
            leading.validation = Validation::UnderWay(pending);
        }
    }

    /// A validation without an answer decides nothing: the deadline does.
    pub(super) fn validation_expired(&mut self) {
        let error = self.timed_out("the validation");
        self.tell(CoreEvent::Error(error));
        self.schedule_validation();
    }

    fn schedule_validation(&mut self) {
        let next = self.next_validation();
        if let State::Leader(leading) = &mut self.state {
            leading.validation = next;
        }
    }

    pub(super) fn observed(&mut self, call: Call, result: Result<Seen, StoreError>) {
        if self.attempt_mut().is_some_and(|attempt| attempt.observes(call)) {
            self.attempt_observed(result);
            return;
        }
        let State::Leader(leading) = &self.state else { return };
        if !leading.validation.is(call) {
            // Nobody waits for this answer any more: what it shows counts only if it is news.
            if result.is_ok_and(|seen| self.overtaken_by(&seen)) {
                self.lose(Reason::Conflict, Then::Compete);
            }
            return;
        }
        self.schedule_validation();
        match result {
            Ok(seen) if self.shows_us(&seen) => {}
            Ok(_) => self.lose(Reason::Validation, Then::Compete),
            Err(error) => self.tell(CoreEvent::Error(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_validation_begins_while_half_of_the_calls_are_unanswered() {
        let at = Boot::from_nanos(3);
        assert_eq!(Validation::Off.due(0), Boot::FOREVER);
        assert_eq!(Validation::Due(at).due(UNANSWERED_MAX - 1), at);
        assert_eq!(Validation::Due(at).due(UNANSWERED_MAX), Boot::FOREVER);
        assert_eq!(Validation::UnderWay(Pending { call: Call(1), expires: at }).due(UNANSWERED_MAX), at);
    }
}
