//! Reconnecting: the grace after an uncertain loss, in which a new leadership may still come.

use super::Core;
use super::acquiring::Attempt;
use super::releasing::Then;
use super::state::State;
use crate::{Boot, CoreEvent, Epoch, Reason};

#[derive(Clone, Debug)]
pub(super) struct Suspended {
    /// The leadership that is over.
    epoch: Epoch,
    reason: Reason,
    /// When that leadership ended.
    deadline: Boot,
    /// The grace ends.
    until: Boot,
    /// Not trying before then.
    pub(super) wake: Boot,
    pub(super) attempt: Option<Attempt>,
}

impl Suspended {
    /// The leadership is lost after all.
    pub(super) fn as_lost(&self) -> CoreEvent {
        CoreEvent::Lost { epoch: self.epoch, reason: self.reason, deadline: self.deadline, released: false }
    }
}

impl Core {
    /// The leadership has ended; a new one may begin until the grace ends.
    pub(super) fn suspend(&mut self, epoch: Epoch, reason: Reason, deadline: Boot, until: Boot) {
        let suspended = Suspended { epoch, reason, deadline, until, wake: self.now, attempt: None };
        self.enter(State::Reconnecting(suspended));
        self.tell(CoreEvent::Suspended { epoch, reason, deadline });
        self.leader_is(None, None);
    }

    pub(super) fn reconnecting_next(&self, suspended: &Suspended) -> Boot {
        let try_at = match &suspended.attempt {
            Some(attempt) => attempt.due(),
            None => self.next_try(suspended.wake),
        };
        suspended.until.min(try_at)
    }

    pub(super) fn restored(&mut self) {
        match &mut self.state {
            State::Follower { .. } => {
                self.backoff.over();
                self.state = State::Follower { wake: self.now };
            }
            State::Reconnecting(suspended) => suspended.wake = self.now,
            State::Leader(leading) => {
                leading.no_doubt();
                self.renew_soon();
            }
            State::Stopped | State::Acquiring(_) | State::Releasing(_) => {}
        }
    }

    pub(super) fn reconnecting_due(&mut self) {
        let State::Reconnecting(suspended) = &self.state else { return };
        if self.now >= suspended.until {
            self.give_back_settling();
            let unfinished = match &mut self.state {
                State::Reconnecting(suspended) => suspended.attempt.take(),
                _ => None,
            };
            self.grace_over();
            // A claim under way is not raced by a second one: it goes on as that of a follower.
            if let (State::Follower { .. }, Some(attempt)) = (&self.state, unfinished)
                && !attempt.is_settling()
            {
                self.enter(State::Acquiring(attempt));
            }
        } else if suspended.attempt.is_some() {
            self.attempt_due();
        } else {
            self.begin_attempt();
        }
    }

    /// The grace is over without a new leadership.
    pub(super) fn grace_over(&mut self) {
        let State::Reconnecting(suspended) = &self.state else { return };
        let lost = suspended.as_lost();
        self.tell(lost);
        self.compete_or_stop(Then::Compete);
    }
}
