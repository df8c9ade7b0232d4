//! Releasing: the work stops, then the demotion hook ends, then the release is written; all before the deadline.

use super::calls::Pending;
use super::leading::Leading;
use super::state::State;
use super::stopping::Extension;
use super::{Call, Core, Output, StoreCall};
use crate::{Boot, CandidateId, CoreEvent, Epoch, Grant, Outcome, Reason, ReleaseOptions};

/// A leadership on its way out.
#[derive(Clone, Debug)]
pub(super) struct Releasing {
    pub(super) grant: Grant,
    /// The last call before the leadership began: the answer to an earlier one is about an earlier leadership.
    pub(super) after: Call,
    /// Nothing is written past it.
    pub(super) deadline: Boot,
    cause: Cause,
    pub(super) then: Then,
    reserve_for: Option<CandidateId>,
    /// Renewals while the work stops, in a planned end.
    pub(super) extension: Option<Extension>,
    pub(super) step: ReleaseStep,
}

#[derive(Clone, Debug)]
pub(super) enum ReleaseStep {
    /// The work has been told to stop.
    EndingWork,
    /// The work is over and the release is being written.
    Writing(Pending),
}

/// Why a leadership ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The program chose to give it up.
    Chosen,
    Lost(Reason),
}

impl Cause {
    /// Whether the program or somebody else, through the store, asked for it: a cooldown applies.
    fn is_step_down(self) -> bool {
        matches!(self, Cause::Chosen | Cause::Lost(Reason::Admin))
    }

    /// Whether the leadership protects its work for as long as it is renewed.
    pub(super) fn is_planned(self) -> bool {
        self.reason().is_none_or(Reason::is_planned)
    }

    fn reason(self) -> Option<Reason> {
        match self {
            Cause::Chosen => None,
            Cause::Lost(reason) => Some(reason),
        }
    }
}

/// What comes after a leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Compete,
    Stop,
}

impl Core {
    /// Leader to Releasing. From here on this epoch is over, whatever a renewal still under way may answer.
    pub(super) fn release(&mut self, cause: Cause, then: Then, reserve_for: Option<CandidateId>) {
        let State::Leader(leading) = &self.state else { return };
        let Leading { grant, after, deadline, .. } = leading.clone();
        let extension = self.extend_while_stopping(cause, leading);
        let (epoch, step) = (grant.epoch, ReleaseStep::EndingWork);
        self.end_work(epoch, deadline, cause.reason());
        let releasing = Releasing { grant, after, deadline, cause, then, reserve_for, extension, step };
        self.enter(State::Releasing(releasing));
    }

    /// Tells the work to stop.
    pub(super) fn end_work(&mut self, epoch: Epoch, by: Boot, why: Option<Reason>) {
        self.work.begin(epoch);
        self.outputs.push_back(Output::EndWork { epoch, by, why });
    }

    /// The work is over: write the release, if there is still time.
    pub(super) fn write_release(&mut self, epoch: Epoch) {
        let State::Releasing(releasing) = &self.state else { return };
        if releasing.grant.epoch != epoch || !matches!(releasing.step, ReleaseStep::EndingWork) {
            return;
        }
        if self.now >= releasing.deadline {
            self.expired();
            return;
        }
        let keeps = releasing.then == Then::Stop && !self.settings.options().release_on_stop;
        if keeps && releasing.cause == Cause::Chosen {
            self.own_record.leave(epoch);
            self.release_over(false);
            return;
        }
        let grant = releasing.grant.clone();
        // A candidate that stops, unlike one that steps down, competes at once when it is started again.
        let stepped_down = releasing.then == Then::Compete && releasing.cause.is_step_down();
        let cooldown = self.settings.options().cooldown.filter(|_| stepped_down);
        let options = ReleaseOptions { reserve_for: releasing.reserve_for.clone(), cooldown };
        let pending = self.call(StoreCall::Release(grant, options));
        if let State::Releasing(releasing) = &mut self.state {
            releasing.step = ReleaseStep::Writing(pending);
        }
    }

    pub(super) fn released(&mut self, call: Call, outcome: Outcome<()>) {
        let State::Releasing(releasing) = &self.state else {
            // Giving back a grant that was not led on: if it failed, the record runs out by itself.
            return;
        };
        if !matches!(releasing.step, ReleaseStep::Writing(pending) if pending.is(call)) {
            return;
        }
        match outcome {
            Outcome::Done(()) => self.release_over(true),
            Outcome::Denied(seen) => {
                // Not ours any more: there was nothing to release.
                self.learn(&seen);
                self.release_over(false);
            }
            Outcome::Unknown(error) | Outcome::Refused(error) => {
                self.tell(CoreEvent::Error(error));
                self.release_over(false);
            }
        }
    }

    pub(super) fn releasing_due(&mut self) {
        let State::Releasing(releasing) = &self.state else { return };
        match releasing.step {
            ReleaseStep::EndingWork if self.now >= releasing.deadline => self.expired(),
            ReleaseStep::EndingWork => self.stopping_due(),
            ReleaseStep::Writing(_) => {
                let error = self.timed_out("the release");
                self.tell(CoreEvent::Error(error));
                self.release_over(false);
            }
        }
    }

    /// The work did not end in time: nothing may be written any more.
    fn expired(&mut self) {
        let State::Releasing(releasing) = &self.state else { return };
        let reason = releasing.cause.reason().unwrap_or(Reason::Deadline);
        self.lose_unreleased(reason);
    }

    /// The leadership is over, and there was no time or nothing left to release.
    pub(super) fn lose_unreleased(&mut self, reason: Reason) {
        let State::Releasing(releasing) = &self.state else { return };
        let (epoch, deadline) = (releasing.grant.epoch, releasing.deadline);
        self.tell(CoreEvent::Lost { epoch, reason, deadline, released: false });
        self.after_release();
    }

    /// The release was written, or it is as good as it gets.
    fn release_over(&mut self, confirmed: bool) {
        let State::Releasing(releasing) = &self.state else { return };
        let (epoch, deadline) = (releasing.grant.epoch, releasing.deadline);
        match releasing.cause {
            Cause::Chosen => self.tell(CoreEvent::Released { epoch, confirmed }),
            Cause::Lost(reason) => {
                self.tell(CoreEvent::Lost { epoch, reason, deadline, released: confirmed })
            }
        }
        self.after_release();
    }

    fn after_release(&mut self) {
        let State::Releasing(releasing) = &self.state else { return };
        let (cause, then, reserved) = (releasing.cause, releasing.then, releasing.reserve_for.is_some());
        self.no_longer_leads();
        // A candidate that hands over leaves the lead to others for a while. One that stops and is started again means to come back.
        let cooldown = self.settings.options().cooldown.filter(|_| cause.is_step_down());
        let hands_over =
            cause.is_step_down() || matches!(cause, Cause::Lost(Reason::Health | Reason::Preempted));
        match cooldown {
            _ if then == Then::Stop => {}
            Some(cooldown) => self.stay_away.cool_down(self.now + cooldown),
            // Not if somebody leads already: the news of that may come before the answer to the release.
            None if hands_over && !self.another_has_led() => {
                self.stay_away.yield_until(self.now + self.settings.yielding(reserved));
            }
            None => {}
        }
        self.compete_or_stop(then);
    }

    /// After a leadership: compete again, if that is wanted.
    pub(super) fn compete_or_stop(&mut self, then: Then) {
        if then == Then::Stop || !self.settings.options().auto_reacquire {
            self.halt();
        } else {
            self.enter(State::Follower { wake: self.now });
        }
    }
}
