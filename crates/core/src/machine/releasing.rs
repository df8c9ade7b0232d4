//! Letting go: the work stops, then the demotion hook ends, then the release is written; all before the deadline.

use super::state::{Letting, LettingStep, State, Then, Why};
use super::{Call, Core, Output};
use crate::{Boot, CandidateId, CoreEvent, Epoch, Outcome, Parting, Reason};

impl Core {
    /// Leader to Releasing. From here on this epoch is over, whatever a renewal still under way may answer.
    pub(super) fn let_go(&mut self, why: Why, then: Then, reserve_for: Option<CandidateId>) {
        let State::Leader(leading) = &self.state else { return };
        let (grant, after, deadline) = (leading.grant.clone(), leading.after, leading.deadline);
        let keep = self.keep_while_stopping(why, leading.renewal);
        let epoch = grant.epoch;
        let reason = match why {
            Why::Chosen => None,
            Why::Lost(reason) => Some(reason),
        };
        self.ending = Some(epoch);
        self.outputs.push_back(Output::EndWork { epoch, by: deadline, why: reason });
        let step = LettingStep::EndingWork;
        self.enter(State::Releasing(Letting { grant, after, deadline, why, then, reserve_for, keep, step }));
    }

    /// The work is over: write the release, if there is still time.
    pub(super) fn write_release(&mut self, epoch: Epoch) {
        let State::Releasing(letting) = &self.state else { return };
        if letting.grant.epoch != epoch || !matches!(letting.step, LettingStep::EndingWork) {
            return;
        }
        if self.now >= letting.deadline {
            self.expired();
            return;
        }
        let keeps = letting.then == Then::Stop && !self.settings.options().release_on_stop;
        if keeps && letting.why == Why::Chosen {
            self.kept = Some(epoch);
            self.gone(false);
            return;
        }
        let grant = letting.grant.clone();
        // Stepping down and stopping differ: who stops comes back when started again.
        let stepped_down = letting.then == Then::Stand && letting.why.is_step_down();
        let cooldown = self.settings.options().cooldown.filter(|_| stepped_down);
        let parting = Parting { reserve_for: letting.reserve_for.clone(), cooldown };
        let expires = self.now + self.settings.timing().call_timeout();
        let call = self.call();
        self.outputs.push_back(Output::Release(call, grant, parting));
        if let State::Releasing(letting) = &mut self.state {
            letting.step = LettingStep::Writing { call, expires };
        }
    }

    pub(super) fn released(&mut self, call: Call, outcome: Outcome<()>) {
        let State::Releasing(letting) = &self.state else {
            // Giving back a grant that was not led on: if it failed, the record runs out by itself.
            return;
        };
        if !matches!(letting.step, LettingStep::Writing { call: writing, .. } if writing == call) {
            return;
        }
        match outcome {
            Outcome::Done(()) => self.gone(true),
            Outcome::Denied(seen) => {
                // Not ours any more: there was nothing to release.
                self.note(&seen);
                self.gone(false);
            }
            Outcome::Unknown(error) | Outcome::Refused(error) => {
                self.tell(CoreEvent::Error(error));
                self.gone(false);
            }
        }
    }

    pub(super) fn releasing_due(&mut self) {
        let State::Releasing(letting) = &self.state else { return };
        match letting.step {
            LettingStep::EndingWork if self.now >= letting.deadline => self.expired(),
            LettingStep::EndingWork => self.stopping_due(),
            LettingStep::Writing { .. } => {
                let error = self.timed_out("the release");
                self.tell(CoreEvent::Error(error));
                self.gone(false);
            }
        }
    }

    /// The work did not end in time: nothing may be written any more.
    fn expired(&mut self) {
        let State::Releasing(letting) = &self.state else { return };
        let reason = match letting.why {
            Why::Lost(reason) => reason,
            Why::Chosen => Reason::Deadline,
        };
        self.lose_unreleased(reason);
    }

    /// The leadership is over, and there was no time or nothing left to release.
    pub(super) fn lose_unreleased(&mut self, reason: Reason) {
        let State::Releasing(letting) = &self.state else { return };
        let (epoch, deadline, why, then) = (letting.grant.epoch, letting.deadline, letting.why, letting.then);
        self.tell(CoreEvent::Lost { epoch, reason, deadline, released: false });
        self.after_letting_go(why, then);
    }

    /// The release was written, or it is as good as it gets.
    fn gone(&mut self, confirmed: bool) {
        let State::Releasing(letting) = &self.state else { return };
        let (epoch, why, then) = (letting.grant.epoch, letting.why, letting.then);
        let deadline = letting.deadline;
        match why {
            Why::Chosen => self.tell(CoreEvent::Released { epoch, confirmed }),
            Why::Lost(reason) => self.tell(CoreEvent::Lost { epoch, reason, deadline, released: confirmed }),
        }
        self.after_letting_go(why, then);
    }

    fn after_letting_go(&mut self, why: Why, then: Then) {
        if self.leader() == Some(&self.who.id) {
            self.leader_is(None, None);
        }
        // Whoever let go makes room. Who stops and is started again means to come back.
        let cooldown = self.settings.options().cooldown.filter(|_| why.is_step_down());
        let makes_room = why.is_step_down() || matches!(why, Why::Lost(Reason::Health | Reason::Preempted));
        match cooldown {
            _ if then == Then::Stop => {}
            Some(cooldown) => self.cooldown_until = self.cooldown_until.max(self.now + cooldown),
            None if makes_room => {
                let reserved =
                    matches!(&self.state, State::Releasing(letting) if letting.reserve_for.is_some());
                self.yield_until = self.now + self.settings.room(reserved);
            }
            None => {}
        }
        self.stand_or_stop(then, self.now);
    }

    /// After a leadership: stand again, if that is wanted.
    pub(super) fn stand_or_stop(&mut self, then: Then, wake: Boot) {
        if then == Then::Stop || !self.settings.options().auto_reacquire {
            self.halt();
        } else {
            self.enter(State::Follower { wake });
        }
    }
}
