//! Asking a leader of a smaller priority to make room.

use super::state::{State, Then};
use super::{Core, Output};
use crate::{Ask, Outcome, Reason, Request, Seen, What};

impl Core {
    /// With a higher priority than the leader's, and the wish to use it: ask once per leadership.
    pub(super) fn ask_for_room(&mut self, seen: &Seen) {
        let options = self.settings.options();
        let (Some(epoch), Some(theirs), Some(_)) = (seen.epoch, seen.priority, seen.leader()) else { return };
        let wanted = options.preempt && options.priority > theirs && self.asked != Some(epoch);
        let foreign = seen.holder.as_ref().is_none_or(|holder| holder.incarnation.is_none());
        if !wanted || foreign || !self.may_stand() || self.now < self.hold_off {
            return;
        }
        let what = Ask::Preempt { by: self.who.id.clone(), priority: options.priority };
        self.asked = Some(epoch);
        let call = self.call();
        self.outputs.push_back(Output::Request(call, Request { epoch, what }));
    }

    pub(super) fn request_answered(&mut self, outcome: Outcome<()>) {
        match outcome {
            Outcome::Held(()) => {
                self.asked_until = self.now + self.settings.timing().ttl();
                let soon = self.now + self.look_out_pause();
                if let State::Follower { wake } = &mut self.state {
                    *wake = (*wake).min(soon);
                }
            }
            Outcome::Denied(seen) => {
                self.note(&seen);
                if self.overtaken_by(&seen) {
                    self.lose(Reason::Conflict, Then::Stand);
                }
            }
            Outcome::Unknown(error) => {
                self.asked = None;
                self.tell(What::Error(error));
            }
            Outcome::Refused(error) => self.tell(What::Error(error)),
        }
    }
}
