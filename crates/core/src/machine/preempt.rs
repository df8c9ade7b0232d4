//! Asking a leader of a smaller priority to hand over.
//!
//! A request can be lost on its way, or the leader can be too busy to hear it. So the candidate asks again while the same
//! leadership goes on: a ttl after the first request, and then after twice the pause each time, up to
//! [`PAUSE_MAX_TTLS`]. A leader that never obeys costs little.

use std::time::Duration;

use super::releasing::Then;
use super::state::State;
use super::{Call, Core, StoreCall};
use crate::{Ask, Boot, CoreEvent, Epoch, Outcome, Reason, Request, Seen, Timing};

/// The longest pause between two requests to one leadership, in ttls.
const PAUSE_MAX_TTLS: u32 = 16;

/// What became of this candidate's requests to the present leadership.
#[derive(Clone, Debug, Default)]
pub(super) struct Preemption(Option<PreemptRequest>);

#[derive(Clone, Debug)]
struct PreemptRequest {
    epoch: Epoch,
    call: Call,
    /// The pause after the next request, in ttls.
    pause_ttls: u32,
    /// No further request before then.
    again_at: Boot,
    /// Until then the leader is expected to hand over.
    handover_until: Boot,
}

impl Preemption {
    /// This candidate leads itself.
    pub(super) fn over(&mut self) {
        self.0 = None;
    }

    fn of(&self, epoch: Epoch) -> Option<&PreemptRequest> {
        self.0.as_ref().filter(|asked| asked.epoch == epoch)
    }

    fn may_ask(&self, epoch: Epoch, now: Boot) -> bool {
        self.of(epoch).is_none_or(|asked| now >= asked.again_at)
    }

    fn asks(&mut self, epoch: Epoch, call: Call, now: Boot, ttl: Duration) {
        let pause_ttls = self.of(epoch).map_or(1, |asked| asked.pause_ttls);
        self.0 = Some(PreemptRequest {
            epoch,
            call,
            pause_ttls: (pause_ttls * 2).min(PAUSE_MAX_TTLS),
            again_at: now + ttl * pause_ttls,
            handover_until: now,
        });
    }

    fn expects_handover(&self, epoch: Epoch, now: Boot) -> bool {
        self.of(epoch).is_some_and(|asked| now < asked.handover_until)
    }
}

impl Core {
    /// Asks, with a higher priority than the leader's and the wish to use it.
    pub(super) fn ask_to_preempt(&mut self, seen: &Seen) {
        let options = self.settings.options();
        let (Some(epoch), Some(theirs), Some(_)) = (seen.epoch, seen.priority, seen.leader()) else { return };
        let wanted = options.preempt && options.priority > theirs && self.preemption.may_ask(epoch, self.now);
        let foreign = seen.holder.as_ref().is_none_or(|holder| holder.incarnation.is_none());
        // While the election is paused this candidate could not take over: nobody is asked to make room for it.
        if !wanted || foreign || seen.paused.is_some() || !self.may_compete() {
            return;
        }
        let what = Ask::Preempt { by: self.who.id.clone(), priority: options.priority };
        let pending = self.call(StoreCall::Request(Request { epoch, what }));
        self.preemption.asks(epoch, pending.call, self.now, self.settings.timing().ttl());
    }

    pub(super) fn request_answered(&mut self, call: Call, outcome: Outcome<()>) {
        let timing = *self.settings.timing();
        let soon = self.now + self.handover_check_pause();
        let asked = self.preemption.0.as_mut().filter(|asked| asked.call == call);
        match outcome {
            Outcome::Done(()) => {
                if let Some(asked) = asked {
                    asked.handover_until = self.now + timing.ttl();
                }
                if let State::Follower { wake } = &mut self.state {
                    *wake = (*wake).min(soon);
                }
            }
            Outcome::Denied(seen) => {
                self.learn(&seen);
                if self.overtaken_by(&seen) {
                    self.lose(Reason::Conflict, Then::Compete);
                } else if seen.leader().is_none() {
                    // Whoever was asked does not lead any more, and nobody else does: no reason to wait for the next look.
                    let soon = self.wake_for(&seen);
                    if let State::Follower { wake } = &mut self.state {
                        *wake = (*wake).min(soon);
                    }
                }
            }
            Outcome::Unknown(error) => {
                // The leader may not have heard of it: no reason to wait for a ttl.
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

    /// When to check whether the leader has handed over, if that is expected.
    ///
    /// A leader that hands over reserves the record for this candidate only for a moment. Where no change is announced, the
    /// candidate must look in that moment: otherwise the old leader would come back, and be asked again, for ever.
    pub(super) fn handover_check_at(&self, seen: &Seen) -> Boot {
        let expected = seen.epoch.is_some_and(|epoch| self.preemption.expects_handover(epoch, self.now));
        if expected && seen.leader().is_some() {
            self.now + self.handover_check_pause()
        } else {
            Boot::FOREVER
        }
    }

    fn handover_check_pause(&self) -> Duration {
        Timing::reservation(self.settings.timing().ttl()) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_leadership_is_asked_at_growing_pauses_and_another_at_once() {
        let (mut preemption, ttl) = (Preemption::default(), Duration::from_secs(1));
        let (first, second) = (Epoch::ZERO, Epoch::MAX);
        let mut now = Boot::default();
        for pause_ttls in [1, 2, 4, 8, 16, 16] {
            assert!(preemption.may_ask(first, now));
            preemption.asks(first, Call(1), now, ttl);
            assert!(!preemption.may_ask(first, now + ttl * pause_ttls - Duration::from_nanos(1)));
            now = now + ttl * pause_ttls;
        }
        assert!(preemption.may_ask(second, Boot::default()));
        assert!(!preemption.expects_handover(first, now), "no request has arrived");
    }
}
