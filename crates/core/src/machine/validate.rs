//! Validation: reading the record back while leading, to know sooner than a renewal would tell.

use super::state::{Leading, State, Step, Then, Validation};
use super::{Call, Core, Output};
use crate::{Boot, CoreEvent, Error, Reason, Seen};

/// With so many calls unanswered no validation is begun: those that hang must not take the place of renewals,
/// for it is renewals that keep the lead.
const VALIDATIONS_MAX: usize = super::CALLS_MAX / 2;

impl Core {
    pub(super) fn next_validation(&self) -> Validation {
        match self.settings.options().validation {
            Some(every) => Validation::Due(self.now + every),
            None => Validation::Off,
        }
    }

    pub(super) fn validation_due(&self, leading: &Leading) -> Boot {
        match &leading.validation {
            Validation::Due(_) if self.unanswered.len() >= VALIDATIONS_MAX => Boot::FOREVER,
            validation => validation.due(),
        }
    }

    pub(super) fn validate_now(&mut self) {
        let free =
            matches!(&self.state, State::Leader(l) if !matches!(l.validation, Validation::UnderWay { .. }));
        // The program may ask as often as it likes; looks that are never answered must not take the places of renewals.
        if !free || self.unanswered.len() >= VALIDATIONS_MAX {
            return;
        }
        let call = self.call();
        let expires = self.now + self.settings.timing().call_timeout();
        self.outputs.push_back(Output::Look(call));
        if let State::Leader(leading) = &mut self.state {
            leading.validation = Validation::UnderWay { call, expires };
        }
    }

    pub(super) fn schedule_validation(&mut self) {
        let next = self.next_validation();
        if let State::Leader(leading) = &mut self.state {
            leading.validation = next;
        }
    }

    pub(super) fn looked(&mut self, call: Call, result: Result<Seen, Error>) {
        if self
            .attempt_mut()
            .is_some_and(|a| matches!(a.step, Step::Looking { call: look, .. } if look == call))
        {
            self.attempt_looked(result);
            return;
        }
        let State::Leader(leading) = &self.state else { return };
        if !matches!(leading.validation, Validation::UnderWay { call: look, .. } if look == call) {
            // Nobody waits for this look any more: what it shows counts only if it is news.
            if result.is_ok_and(|seen| self.overtaken_by(&seen)) {
                self.lose(Reason::Conflict, Then::Stand);
            }
            return;
        }
        self.schedule_validation();
        match result {
            Ok(seen) if self.shows_us(&seen) => {}
            Ok(_) => self.lose(Reason::Validation, Then::Stand),
            Err(error) => self.tell(CoreEvent::Error(error)),
        }
    }
}
