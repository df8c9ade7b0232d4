//! Leading: belief, renewal, and every way to lose it.

use super::acquiring::Attempt;
use super::calls::Pending;
use super::releasing::{Cause, Then};
use super::requests::PlannedStepDown;
use super::state::State;
use super::validation::Validation;
use super::{Call, Core, Output, StoreCall};
use crate::{Boot, CoreEvent, ErrorKind, Grant, Outcome, Reason, Seen, StoreError};

/// A leadership.
#[derive(Clone, Debug)]
pub(super) struct Leading {
    pub(super) grant: Grant,
    /// Belief ends.
    pub(super) deadline: Boot,
    /// The work is told to stop.
    stop_at: Boot,
    pub(super) renewal: Renewal,
    /// Renewals that failed in a row.
    failures: u32,
    /// As far as is known, the next renewal comes together with those of other elections; with jitter, the one after it comes earlier.
    bunched: bool,
    /// When to warn; `None` once warned, until a renewal is confirmed.
    danger_at: Option<Boot>,
    pub(super) validation: Validation,
    /// The last call before it began: the answer to an earlier one is about an earlier leadership.
    pub(super) after: Call,
    /// Since when the connection has been silent.
    doubt_since: Option<Boot>,
    /// Somebody asked to step down at a later time.
    pub(super) planned: Option<PlannedStepDown>,
}

impl Leading {
    fn step_down_due(&self) -> Boot {
        self.planned.as_ref().map_or(Boot::FOREVER, |planned| planned.at)
    }

    /// The connection is not silent any more.
    pub(super) fn no_doubt(&mut self) {
        self.doubt_since = None;
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Renewal {
    Due(Boot),
    UnderWay(Pending),
}

impl Renewal {
    /// Whether this call is the one under way.
    pub(super) fn is(&self, call: Call) -> bool {
        matches!(self, Renewal::UnderWay(pending) if pending.is(call))
    }
}

impl Core {
    /// The grant is in hand: lead, if there is time left to.
    pub(super) fn promote(&mut self, grant: Grant) {
        let timing = *self.settings.timing();
        let from = self.counted_from(&grant);
        let deadline = self.deadline(from, &grant);
        let stop_at = deadline - timing.stop_lead();
        if stop_at <= self.now || self.work.is_ending() {
            self.give_back(grant);
            let error = StoreError::new(
                ErrorKind::TimedOut,
                "store",
                "the lead was granted too late to be used; the store is slower than the ttl allows",
            );
            self.attempt_failed(error);
            return;
        }
        if !self.is_healthy() {
            self.give_back(grant);
            self.wait(self.now);
            return;
        }
        let resumed = matches!(self.state, State::Reconnecting(_));
        let request = self.attempt_mut().and_then(Attempt::take_request);
        let epoch = grant.epoch;
        let (renew_at, bunched) = self.next_renewal(from, true);
        let leading = Leading {
            deadline,
            stop_at,
            renewal: Renewal::Due(renew_at),
            failures: 0,
            bunched,
            danger_at: Some(danger_at(renew_at, stop_at)),
            validation: self.next_validation(),
            doubt_since: None,
            planned: None,
            after: self.calls.last(),
            grant,
        };
        self.preemption.over();
        self.view.spend(epoch);
        self.own_record.forget();
        self.outputs.push_back(Output::Believe { epoch, until: deadline });
        self.enter(State::Leader(leading));
        self.tell(if resumed {
            CoreEvent::Resumed { epoch, deadline }
        } else {
            CoreEvent::Acquired { epoch, deadline }
        });
        self.leader_is(Some(self.who.id.clone()), Some(epoch));
        if let Some(request) = request.filter(|request| request.epoch == epoch) {
            self.obey(request.what);
        }
    }

    /// The instant before the call; should a backend claim a later one than now, now.
    pub(super) fn counted_from(&self, grant: &Grant) -> Boot {
        grant.counted_from.min(self.now)
    }

    pub(super) fn deadline(&self, from: Boot, grant: &Grant) -> Boot {
        self.settings.timing().deadline(from, grant.ttl)
    }

    pub(super) fn lead_due(&self, leading: &Leading) -> Boot {
        let (renewal, validation) = (self.renewal_due(leading), leading.validation.due(self.calls.count()));
        let danger = leading.danger_at.unwrap_or(Boot::FOREVER);
        let step_down = leading.step_down_due();
        leading.stop_at.min(renewal).min(validation).min(danger).min(self.doubt_ends(leading)).min(step_down)
    }

    /// With every place for a call taken, a renewal that is due waits for an answer to something.
    fn renewal_due(&self, leading: &Leading) -> Boot {
        match leading.renewal {
            Renewal::Due(_) if self.calls.is_full() => Boot::FOREVER,
            Renewal::Due(at) => at,
            Renewal::UnderWay(pending) => pending.expires,
        }
    }

    pub(super) fn doubt_ends(&self, leading: &Leading) -> Boot {
        match (leading.doubt_since, self.settings.options().disconnect_grace) {
            (Some(since), Some(grace)) => since + grace,
            _ => Boot::FOREVER,
        }
    }

    pub(super) fn leader_due(&mut self) {
        let State::Leader(leading) = &self.state else { return };
        if self.now >= leading.stop_at {
            self.out_of_time();
        } else if self.now >= self.doubt_ends(leading) {
            self.lose(Reason::Connection, Then::Compete);
        } else if self.now >= leading.step_down_due() {
            self.step_down_as_planned();
        } else if leading.danger_at.is_some_and(|at| self.now >= at) {
            self.warn();
        } else if self.now >= self.renewal_due(leading) {
            match leading.renewal {
                Renewal::Due(_) => self.renew(),
                Renewal::UnderWay(_) => {
                    let error = self.timed_out("the renewal");
                    self.renewal_failed(error);
                }
            }
        } else if self.now >= leading.validation.due(self.calls.count()) {
            match leading.validation {
                Validation::Due(_) => self.validate_now(),
                Validation::UnderWay(_) | Validation::Off => self.validation_expired(),
            }
        }
    }

    /// The time for stopping has come, and no renewal was confirmed.
    fn out_of_time(&mut self) {
        let State::Leader(leading) = &self.state else { return };
        let graceful = self.now < leading.deadline && self.settings.options().reconnect_grace.is_none();
        if graceful {
            // There is still time to stop the work in order and, if the store comes back, to release.
            self.release(Cause::Lost(Reason::Deadline), Then::Compete, None);
        } else {
            self.lose(Reason::Deadline, Then::Compete);
        }
    }

    fn warn(&mut self) {
        if let State::Leader(leading) = &mut self.state {
            leading.danger_at = None;
            let (epoch, deadline) = (leading.grant.epoch, leading.deadline);
            self.tell(CoreEvent::Danger { epoch, deadline });
        }
    }

    fn renew(&mut self) {
        let State::Leader(leading) = &self.state else { return };
        let pending = self.call(StoreCall::Renew { grant: leading.grant.clone(), sent: self.now });
        if let State::Leader(leading) = &mut self.state {
            leading.renewal = Renewal::UnderWay(pending);
        }
    }

    pub(super) fn renew_soon(&mut self) {
        let now = self.now;
        if let State::Leader(Leading { renewal: Renewal::Due(at), .. }) = &mut self.state {
            *at = (*at).min(now);
        }
    }

    pub(super) fn renewed(&mut self, call: Call, outcome: Outcome<Grant>) {
        if let State::Releasing(_) = self.state {
            self.renewed_while_stopping(call, outcome);
            return;
        }
        let State::Leader(leading) = &self.state else { return };
        if call <= leading.after {
            return;
        }
        let current = leading.renewal.is(call);
        match outcome {
            Outcome::Done(grant) if grant.epoch == leading.grant.epoch => {
                self.renewal_confirmed(current, grant)
            }
            Outcome::Done(_) => {}
            Outcome::Denied(seen) => {
                self.learn(&seen);
                // Told apart by what is there: still us means that a call of our own overtook this one, which is
                // no failure; the next renewal will do.
                if self.shows_us(&seen) {
                    if current {
                        self.renew_after_retry();
                    }
                } else {
                    self.lose(Reason::Conflict, Then::Compete);
                }
            }
            Outcome::Unknown(error) if current => self.renewal_failed(error),
            Outcome::Unknown(_) => {}
            Outcome::Refused(error) => {
                self.failure = Some(error.clone());
                self.tell(CoreEvent::Error(error));
                self.lose(Reason::Refused, Then::Stop);
            }
        }
    }

    /// The answer may be that of an earlier call which came late: it counts from when *that* was sent.
    fn renewal_confirmed(&mut self, current: bool, grant: Grant) {
        let from = self.counted_from(&grant);
        let deadline = self.deadline(from, &grant);
        let timing = *self.settings.timing();
        let bunched =
            matches!(&self.state, State::Leader(leading) if leading.failures > 0 || leading.bunched);
        let (next, bunched) = self.next_renewal(from, bunched);
        let State::Leader(leading) = &mut self.state else { return };
        if deadline > leading.deadline {
            leading.deadline = deadline;
            leading.stop_at = deadline - timing.stop_lead();
            leading.danger_at = Some(danger_at(next.max(self.now), leading.stop_at));
            leading.grant = grant;
            self.outputs.push_back(Output::Believe { epoch: leading.grant.epoch, until: deadline });
        }
        leading.failures = 0;
        leading.no_doubt();
        if current {
            leading.renewal = Renewal::Due(next);
            leading.bunched = bunched;
        }
    }

    fn renew_after_retry(&mut self) {
        let at = self.now + self.settings.timing().renew_again();
        if let State::Leader(leading) = &mut self.state {
            leading.renewal = Renewal::Due(at);
        }
    }

    fn renewal_failed(&mut self, error: StoreError) {
        self.tell(CoreEvent::Error(error));
        self.renew_after_retry();
        let limit = self.settings.options().failed_renewals;
        let State::Leader(leading) = &mut self.state else { return };
        leading.failures = leading.failures.saturating_add(1);
        if limit.is_some_and(|limit| leading.failures >= limit) {
            self.lose(Reason::Connection, Then::Compete);
        }
    }

    /// The watch shows a record while we lead.
    pub(super) fn leader_saw(&mut self, seen: &Seen) {
        if self.shows_us(seen) {
            return;
        }
        if self.overtaken_by(seen) {
            self.lose(Reason::Conflict, Then::Compete);
        } else {
            // No record, or an older one: a watch may be late, so let a compare-and-set decide, now.
            self.renew_soon();
        }
    }

    /// Whether this shows the leadership that is held, or whose work is being stopped. A store that does not tell epochs can
    /// still tell incarnations.
    pub(super) fn shows_us(&self, seen: &Seen) -> bool {
        seen.is_held_by(&self.who) && (seen.epoch.is_none() || seen.epoch == self.state.held())
    }

    /// Whether this shows a leadership after that one, which is proof enough that it is over.
    pub(super) fn overtaken_by(&self, seen: &Seen) -> bool {
        let later = self.state.held().is_some_and(|ours| seen.epoch.is_some_and(|theirs| theirs > ours));
        later && seen.holder.is_some()
    }

    pub(super) fn doubt(&mut self) {
        let now = self.now;
        if let State::Leader(leading) = &mut self.state {
            leading.doubt_since.get_or_insert(now);
        }
    }

    pub(super) fn session_gone(&mut self) {
        match &mut self.state {
            State::Leader(_) => self.lose(Reason::Connection, Then::Compete),
            State::Releasing(_) => self.unprotected(Reason::Connection),
            State::Acquiring(_) | State::Reconnecting(_) => {
                if self.attempt_mut().is_some_and(|attempt| attempt.is_settling()) {
                    // Mostly it is gone with the session. But the news may be of an earlier one than the grant's.
                    self.give_back_settling();
                    let sentence = "the session ended before the lead began";
                    self.attempt_failed(StoreError::new(ErrorKind::Unavailable, "store", sentence));
                }
            }
            State::Stopped | State::Follower { .. } => {}
        }
    }

    /// The leadership is over at once, against our will.
    pub(super) fn lose(&mut self, reason: Reason, then: Then) {
        let State::Leader(leading) = &self.state else { return };
        let (epoch, deadline) = (leading.grant.epoch, leading.deadline);
        // Out of time means that there is as much left as was set aside for stopping; anything else is worse.
        let by = if reason == Reason::Deadline { leading.deadline } else { leading.deadline.min(self.now) };
        let grace = self.settings.options().reconnect_grace;
        let doubtful = matches!(reason, Reason::Deadline | Reason::Connection) && then == Then::Compete;
        if let (Some(grace), true) = (grace, doubtful) {
            self.end_work(epoch, by, Some(reason));
            self.suspend(epoch, reason, deadline, self.now + grace);
            return;
        }
        self.end_work(epoch, by, Some(reason));
        self.tell(CoreEvent::Lost { epoch, reason, deadline, released: false });
        self.no_longer_leads();
        self.compete_or_stop(then);
    }
}

/// Half-way between when the renewal was due and when the work must be told to stop.
fn danger_at(renew_at: Boot, stop_at: Boot) -> Boot {
    renew_at + stop_at.since(renew_at) / 2
}
