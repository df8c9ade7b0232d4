//! Asking a leader of a smaller priority to make room.
//!
//! A request can be lost on its way, or the leader can be too busy to hear it. So the candidate asks again while the same
//! leadership goes on: a ttl after the first request, and then after twice the pause each time, up to
//! [`PAUSE_MAX_TTLS`]. A leader that never obeys costs little.

use std::time::Duration;

use super::state::{State, Then};
use super::{Call, Core, Output};
use crate::{Ask, Boot, CoreEvent, Epoch, Outcome, Reason, Request, Seen, Timing};

/// The longest pause between two requests to one leadership, in ttls.
const PAUSE_MAX_TTLS: u32 = 16;

/// A leadership that was asked to make room.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    epoch: Epoch,
    call: Call,
    /// The pause after the next request, in ttls.
    pause_ttls: u32,
    /// Not asked again before then.
    again_at: Boot,
    /// Until then, look out for the room that was asked for.
    look_out_until: Boot,
}

impl Core {
    /// Asks, with a higher priority than the leader's and the wish to use it.
    pub(super) fn ask_to_preempt(&mut self, seen: &Seen) {
        let options = self.settings.options();
        let (Some(epoch), Some(theirs), Some(_)) = (seen.epoch, seen.priority, seen.leader()) else { return };
        let before = self.asked.as_ref().filter(|asked| asked.epoch == epoch);
        let too_soon = before.is_some_and(|asked| self.now < asked.again_at);
        let wanted = options.preempt && options.priority > theirs && !too_soon;
        let foreign = seen.holder.as_ref().is_none_or(|holder| holder.incarnation.is_none());
        if !wanted || foreign || self.stays_away() {
            return;
        }
        let what = Ask::Preempt { by: self.who.id.clone(), priority: options.priority };
        let pause_ttls = before.map_or(1, |asked| asked.pause_ttls);
        let again_at = self.now + self.settings.timing().ttl() * pause_ttls;
        let call = self.call();
        self.asked = Some(Asked {
            epoch,
            call,
            pause_ttls: (pause_ttls * 2).min(PAUSE_MAX_TTLS),
            again_at,
            look_out_until: self.now,
        });
        self.outputs.push_back(Output::Request(call, Request { epoch, what }));
    }

    pub(super) fn request_answered(&mut self, call: Call, outcome: Outcome<()>) {
        let timing = *self.settings.timing();
        let soon = self.now + self.look_out_pause();
        let asked = self.asked.as_mut().filter(|asked| asked.call == call);
        match outcome {
            Outcome::Done(()) => {
                if let Some(asked) = asked {
                    asked.look_out_until = self.now + timing.ttl();
                }
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
                // It may not have arrived, so the leader may not have heard of it: no reason to wait for a ttl.
                if let Some(asked) = asked {
                    asked.again_at = asked.again_at.min(self.now + timing.retry());
                }
                self.tell(CoreEvent::Error(error));
            }
            Outcome::Refused(error) => {
                if let Some(asked) = asked {
                    asked.again_at = Boot::FOREVER;
                }
                self.tell(CoreEvent::Error(error));
            }
        }
    }

    /// A leader that makes room keeps the record for us only for a moment. Where no change is announced, that
    /// moment is met only by looking, and missing it would have the old leader back, and asked again, for ever.
    pub(super) fn look_out(&self, seen: &Seen) -> Boot {
        let asked = self.asked.as_ref().filter(|asked| Some(asked.epoch) == seen.epoch);
        let looks_out = asked.is_some_and(|asked| self.now < asked.look_out_until);
        if looks_out && seen.leader().is_some() { self.now + self.look_out_pause() } else { Boot::FOREVER }
    }

    fn look_out_pause(&self) -> Duration {
        Timing::reservation(self.settings.timing().ttl()) / 2
    }
}
