//! Work that stops in a planned end: while it does, the record is still renewed, for as long as `stop_timeout`.
//!
//! The epoch is over all the same. Nothing here makes a candidate lead again; what a renewal brings is time, until which nobody
//! else may lead and by which the work must be gone. A deadline that no renewal moved bounds the work as ever, and so an end
//! that the deadline forces is not renewed.

use super::state::{Keep, Letting, LettingStep, Renewal, State, Why};
use super::{Call, Core, Output};
use crate::{Boot, CoreEvent, Grant, Outcome, Reason, Seen};

impl Letting {
    /// When the next renewal is due, if any more is.
    fn renewal_due(&self, calls: usize) -> Boot {
        match &self.keep {
            Some(Keep { renewal: Renewal::UnderWay { expires, .. }, .. }) => *expires,
            Some(Keep { renewal: Renewal::Due(at), until }) if at < until && calls < super::CALLS_MAX => *at,
            _ => Boot::FOREVER,
        }
    }
}

impl Core {
    /// How long the record is renewed while the work of this leadership stops; `renewal` goes on from where it was.
    pub(super) fn keep_while_stopping(&self, why: Why, renewal: Renewal) -> Option<Keep> {
        let span = self.settings.options().stop_timeout;
        let planned = match why {
            Why::Chosen => true,
            Why::Lost(reason) => reason.is_planned(),
        };
        (planned && !span.is_zero()).then(|| Keep { until: self.now + span, renewal })
    }

    pub(super) fn releasing_next(&self, letting: &Letting) -> Boot {
        match letting.step {
            LettingStep::EndingWork => letting.deadline.min(letting.renewal_due(self.unanswered.len())),
            LettingStep::Writing { expires, .. } => expires,
        }
    }

    /// Before the deadline, in [`LettingStep::EndingWork`]: renew, or give a renewal up that has no answer.
    pub(super) fn stopping_due(&mut self) {
        let State::Releasing(Letting { keep: Some(keep), grant, .. }) = &mut self.state else { return };
        if let Renewal::UnderWay { .. } = keep.renewal {
            keep.renewal = Renewal::Due(self.now + self.settings.timing().renew_again());
            let error = self.timed_out("the renewal");
            self.tell(CoreEvent::Error(error));
            return;
        }
        let grant = grant.clone();
        let call = self.call();
        let expires = self.now + self.settings.timing().call_timeout();
        if let State::Releasing(Letting { keep: Some(keep), .. }) = &mut self.state {
            keep.renewal = Renewal::UnderWay { call, expires };
        }
        self.outputs.push_back(Output::Renew { call, grant, sent: self.now });
    }

    /// A renewal was answered while the work stops; it may have left before the work was told to. Where none is sent any more,
    /// the answer brings no time. But what it shows of others counts all the same: the work must not run beside theirs.
    pub(super) fn renewed_while_stopping(&mut self, call: Call, outcome: Outcome<Grant>) {
        let State::Releasing(letting) = &self.state else { return };
        if call <= letting.after || !matches!(letting.step, LettingStep::EndingWork) {
            return;
        }
        let held = letting.grant.epoch;
        match outcome {
            Outcome::Done(grant) if grant.epoch == held => self.stop_extended(call, grant),
            Outcome::Done(_) => {}
            Outcome::Denied(seen) if self.shows_us(&seen) => {
                self.renew_again_while_stopping(call);
            }
            Outcome::Denied(seen) => {
                self.note(&seen);
                self.unprotected(Reason::Conflict);
            }
            Outcome::Unknown(error) => {
                if self.renew_again_while_stopping(call) {
                    self.tell(CoreEvent::Error(error));
                }
            }
            Outcome::Refused(error) => {
                if let State::Releasing(letting) = &mut self.state {
                    letting.keep = None;
                }
                self.tell(CoreEvent::Error(error));
            }
        }
    }

    /// The renewal brought nothing, so another is to follow; false if it was given up before, or none follows any more.
    fn renew_again_while_stopping(&mut self, call: Call) -> bool {
        let again = self.now + self.settings.timing().renew_again();
        let State::Releasing(Letting { keep: Some(keep), .. }) = &mut self.state else { return false };
        let current = keep.renewal.is(call);
        if current {
            keep.renewal = Renewal::Due(again);
        }
        current
    }

    fn stop_extended(&mut self, call: Call, grant: Grant) {
        let from = self.counted_from(&grant);
        let deadline = self.deadline(from, &grant);
        let renew = self.settings.timing().renew();
        let State::Releasing(letting) = &mut self.state else { return };
        let Some(keep) = &mut letting.keep else { return };
        if keep.renewal.is(call) {
            keep.renewal = Renewal::Due(from + renew);
        }
        if deadline > letting.deadline {
            let epoch = grant.epoch;
            (letting.deadline, letting.grant) = (deadline, grant);
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
        let State::Releasing(letting) = &mut self.state else { return };
        let epoch = letting.grant.epoch;
        letting.keep = None;
        if let LettingStep::EndingWork = letting.step {
            letting.deadline = letting.deadline.min(self.now);
            self.outputs.push_back(Output::EndWork { epoch, by: self.now, why: Some(reason) });
            self.lose_unreleased(reason);
        }
    }
}
