//! Reconnecting: the grace after a loss in doubt, in which a new leadership may still come.

use super::Core;
use super::state::{State, Step, Then};

impl Core {
    pub(super) fn restored(&mut self) {
        match &mut self.state {
            State::Follower { .. } => {
                self.backoff.over();
                self.state = State::Follower { wake: self.now };
            }
            State::Reconnecting(suspended) => suspended.wake = self.now,
            State::Leader(_) => self.renew_soon(),
            State::Stopped | State::Acquiring(_) | State::Releasing(_) => {}
        }
        if let State::Leader(leading) = &mut self.state {
            leading.doubt_since = None;
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
                && !matches!(attempt.step, Step::Settling { .. })
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
        self.stand_or_stop(Then::Stand, self.now);
    }
}
