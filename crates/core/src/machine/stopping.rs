//! Work that stops in a planned end: while it does, the record is still renewed, for as long as `stop_timeout`.
//!
//! The epoch is over all the same. Nothing here makes a candidate lead again; what a renewal brings is time, until which nobody
//! else may lead and by which the work must be gone. A deadline that no renewal moved bounds the work as ever, and so an end
//! that the deadline forces is not renewed.

use super::leading::{Leading, Renewal};
use super::releasing::{Cause, ReleaseStep, Releasing};
use super::state::State;
use super::{Call, Core, Output, StoreCall};
use crate::{Boot, CoreEvent, Grant, Outcome, Reason, Seen};

/// Renewals of a record whose work is being stopped.
#[derive(Clone, Debug)]
pub(super) struct Extension {
    /// No renewal from then on.
    until: Boot,
    renewal: Renewal,
}

impl Extension {
    /// When to renew, or to give up the renewal under way.
    fn due(&self, calls_full: bool) -> Boot {
        match self.renewal {
            Renewal::UnderWay(pending) => pending.expires,
            Renewal::Due(at) if at < self.until && !calls_full => at,
            Renewal::Due(_) => Boot::FOREVER,
        }
    }
}

impl Core {
    /// How long the record is renewed while the work of this leadership stops; its renewals go on from where they were.
    pub(super) fn extend_while_stopping(&self, cause: Cause, leading: &Leading) -> Option<Extension> {
        let span = self.settings.options().stop_timeout;
        let extends = cause.is_planned() && !span.is_zero();
        extends.then(|| Extension { until: self.now + span, renewal: leading.renewal })
    }

    pub(super) fn releasing_next(&self, releasing: &Releasing) -> Boot {
        match releasing.step {
            ReleaseStep::EndingWork => {
                let full = self.calls.is_full();
                let renewal = releasing.extension.as_ref().map_or(Boot::FOREVER, |e| e.due(full));
                releasing.deadline.min(renewal)
            }
            ReleaseStep::Writing(pending) => pending.expires,
        }
    }

    /// Before the deadline, in [`ReleaseStep::EndingWork`]: renew, or give a renewal up that has no answer.
    pub(super) fn stopping_due(&mut self) {
        let State::Releasing(Releasing { extension: Some(extension), grant, .. }) = &mut self.state else {
            return;
        };
        if let Renewal::UnderWay(_) = extension.renewal {
            extension.renewal = Renewal::Due(self.now + self.settings.timing().renew_again());
            let error = self.timed_out("the renewal");
            self.tell(CoreEvent::Error(error));
            return;
        }
        let renew = StoreCall::Renew { grant: grant.clone(), sent: self.now };
        let pending = self.call(renew);
        if let State::Releasing(Releasing { extension: Some(extension), .. }) = &mut self.state {
            extension.renewal = Renewal::UnderWay(pending);
        }
    }

    /// A renewal was answered while the work stops; it may have left before the work was told to. Where none is sent any more,
    /// the answer brings no time. But what it shows of others counts all the same: the work must not run beside theirs.
    pub(super) fn renewed_while_stopping(&mut self, call: Call, outcome: Outcome<Grant>) {
        let State::Releasing(releasing) = &self.state else { return };
        if call <= releasing.after || !matches!(releasing.step, ReleaseStep::EndingWork) {
            return;
        }
        let held = releasing.grant.epoch;
        match outcome {
            Outcome::Done(grant) if grant.epoch == held => self.stop_extended(call, grant),
            Outcome::Done(_) => {}
            Outcome::Denied(seen) if self.shows_us(&seen) => {
                self.renew_again_while_stopping(call);
            }
            Outcome::Denied(seen) => {
                self.learn(&seen);
                self.unprotected(Reason::Conflict);
            }
            Outcome::Unknown(error) => {
                if self.renew_again_while_stopping(call) {
                    self.tell(CoreEvent::Error(error));
                }
            }
            Outcome::Refused(error) => {
                if let State::Releasing(releasing) = &mut self.state {
                    releasing.extension = None;
                }
                self.tell(CoreEvent::Error(error));
            }
        }
    }

    /// The renewal brought nothing, so another is to follow; false if it was given up before, or none follows any more.
    fn renew_again_while_stopping(&mut self, call: Call) -> bool {
        let again = self.now + self.settings.timing().renew_again();
        let State::Releasing(Releasing { extension: Some(extension), .. }) = &mut self.state else {
            return false;
        };
        let current = extension.renewal.is(call);
        if current {
            extension.renewal = Renewal::Due(again);
        }
        current
    }

    fn stop_extended(&mut self, call: Call, grant: Grant) {
        let from = self.counted_from(&grant);
        let deadline = self.deadline(from, &grant);
        let renew = self.settings.timing().renew();
        let State::Releasing(releasing) = &mut self.state else { return };
        let Some(extension) = &mut releasing.extension else { return };
        if extension.renewal.is(call) {
            extension.renewal = Renewal::Due(from + renew);
        }
        if deadline > releasing.deadline {
            let epoch = grant.epoch;
            (releasing.deadline, releasing.grant) = (deadline, grant);
            self.outputs.push_back(Output::ExtendStop { epoch, by: deadline });
        }
    }

    /// The watch shows a record while the work stops.
    pub(super) fn stopping_saw(&mut self, seen: &Seen) {
        if self.overtaken_by(seen) {
            self.unprotected(Reason::Conflict);
        }
    }

    /// The work is already stopping, but what protected it is gone: it must be over now.
    pub(super) fn unprotected(&mut self, reason: Reason) {
        let State::Releasing(releasing) = &mut self.state else { return };
        let epoch = releasing.grant.epoch;
        releasing.extension = None;
        if let ReleaseStep::EndingWork = releasing.step {
            releasing.deadline = releasing.deadline.min(self.now);
            self.outputs.push_back(Output::EndWork { epoch, by: self.now, why: Some(reason) });
            self.lose_unreleased(reason);
        }
    }
}
