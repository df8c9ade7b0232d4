//! Acquiring: waiting for a chance, claiming, and learning the outcome of the claim.

use super::calls::Pending;
use super::releasing::Then;
use super::state::State;
use super::{Call, Core, StoreCall};
use crate::{
    Ask, Bid, Boot, CoreEvent, Epoch, ErrorKind, Grant, Outcome, Proof, Reason, ReleaseOptions, Request,
    Seen, StoreError,
};

/// After a denial that names no time to wait for, and the shortest pause after any: a store that denies and
/// says "now" must not be asked in a loop.
const DENIED_PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// How often a candidate looks while the election is paused. A pause can be long, and the news that it was ended early can be lost.
const PAUSED_LOOK: std::time::Duration = std::time::Duration::from_secs(60);

/// One try to lead, from the claim until its outcome is certain.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    claim: Call,
    /// The highest epoch known when the claim left.
    floor: Epoch,
    /// What somebody asks of the leadership that this attempt is about to bring. It is obeyed at the promotion.
    request: Option<Request>,
    step: Step,
}

#[derive(Clone, Debug)]
enum Step {
    /// The claim is under way; at `expires` its outcome counts as unknown.
    Claiming { expires: Boot },
    /// The outcome of the claim is unknown; an observation will tell.
    Observing(Pending),
    /// Granted on evidence of a crash: the last of the old work may still be dying.
    Settling { grant: Grant, until: Boot },
}

impl Attempt {
    pub(super) fn due(&self) -> Boot {
        match &self.step {
            Step::Claiming { expires } | Step::Observing(Pending { expires, .. }) => *expires,
            Step::Settling { until, .. } => *until,
        }
    }

    /// Whether this call is the observation that the attempt waits for.
    pub(super) fn observes(&self, call: Call) -> bool {
        matches!(self.step, Step::Observing(pending) if pending.is(call))
    }

    pub(super) fn is_settling(&self) -> bool {
        self.settling().is_some()
    }

    fn settling(&self) -> Option<&Grant> {
        match &self.step {
            Step::Settling { grant, .. } => Some(grant),
            Step::Claiming { .. } | Step::Observing(_) => None,
        }
    }

    /// Keeps a request until the leadership begins. Of several requests for one epoch the first counts, as it does for a leader. One
    /// for a later epoch replaces it: which epoch this attempt brings is not known before the answer to its claim.
    pub(super) fn keep(&mut self, request: Request) {
        // A request to end at once stays; one to end later gives way to whatever is asked next.
        let gives_way = |kept: &Request| {
            kept.epoch < request.epoch
                || kept.epoch == request.epoch && matches!(kept.what, Ask::StepDownLater { .. })
        };
        if self.request.as_ref().is_none_or(gives_way) {
            self.request = Some(request);
        }
    }

    pub(super) fn take_request(&mut self) -> Option<Request> {
        self.request.take()
    }
}

impl Core {
    /// Follower to Acquiring, or a try within the reconnect grace.
    pub(super) fn begin_attempt(&mut self) {
        if self.calls.is_full() {
            // Unanswered calls are never dropped, so no other can be made. Say so: a silent candidate would seem to wait its turn.
            let sentence = "the store leaves all calls unanswered, so no more are made until one is answered; check the store";
            self.attempt_failed(StoreError::new(ErrorKind::Unavailable, "store", sentence));
            return;
        }
        self.attempt += 1;
        let attempt = self.claim();
        match &mut self.state {
            State::Reconnecting(suspended) => suspended.attempt = Some(attempt),
            _ => self.enter(State::Acquiring(attempt)),
        }
    }

    fn claim(&mut self) -> Attempt {
        let options = self.settings.options();
        let bid = Bid {
            who: self.who.clone(),
            ttl: self.settings.timing().ttl(),
            floor: self.view.highest(),
            priority: options.priority,
            metadata: options.metadata.clone(),
            cooldown: options.cooldown,
            danger_reclaim: options.danger_reclaim,
            sent: self.now,
        };
        self.enter_race();
        let Pending { call, expires } = self.call(StoreCall::Claim(bid));
        Attempt { claim: call, floor: self.view.highest(), request: None, step: Step::Claiming { expires } }
    }

    pub(super) fn attempt_due(&mut self) {
        let Some(attempt) = self.attempt_mut() else { return };
        match &attempt.step {
            Step::Claiming { .. } => {
                let error = self.timed_out("the claim");
                self.resolve(error);
            }
            Step::Observing(_) => {
                let error = self.timed_out("the observation after a claim");
                self.attempt_failed(error);
            }
            Step::Settling { grant, .. } => {
                let grant = grant.clone();
                if grant.epoch < self.view.highest() { self.overtaken(grant) } else { self.promote(grant) }
            }
        }
    }

    pub(super) fn claimed(&mut self, call: Call, outcome: Outcome<Grant>) {
        if let Outcome::Denied(Seen { cooldown: Some(span), .. }) = &outcome {
            // Also in a late answer: the store says this only once.
            self.stay_away.cool_down(self.now + *span);
        }
        let current = self.attempt_mut().is_some_and(|a| a.claim == call && !a.is_settling());
        if !current {
            // Nobody waits for this answer any more. If it brought the lead, the store has a record in our name that we do
            // not lead on, and that keeps others out.
            if let Outcome::Done(grant) = outcome
                && !self.acts_on(&grant)
            {
                self.give_back(grant);
            }
            return;
        }
        let claiming = self.attempt_mut().is_some_and(|a| matches!(a.step, Step::Claiming { .. }));
        match outcome {
            Outcome::Done(grant) => self.granted(grant),
            Outcome::Denied(seen) => {
                self.learn(&seen);
                self.denied(seen);
            }
            Outcome::Unknown(error) if claiming => self.resolve(error),
            // The observation under way decides.
            Outcome::Unknown(_) => {}
            Outcome::Refused(error) => self.fail(error),
        }
    }

    fn granted(&mut self, grant: Grant) {
        if !self.is_new(&grant) {
            self.overtaken(grant);
            return;
        }
        self.backoff.over();
        self.stagger.won();
        self.view.saw(grant.epoch);
        let settle = self.settings.options().settle;
        if grant.after_crash && !settle.is_zero() {
            let until = self.now + settle;
            if let Some(attempt) = self.attempt_mut() {
                attempt.step = Step::Settling { grant, until };
            }
            return;
        }
        self.promote(grant);
    }

    /// A store must never issue a number twice, and a grant that others have already overtaken is worth nothing:
    /// neither is trusted.
    fn is_new(&mut self, grant: &Grant) -> bool {
        let issued_before = self.attempt_mut().is_some_and(|attempt| grant.epoch <= attempt.floor);
        !issued_before && grant.epoch >= self.view.highest() && self.view.is_unspent(grant.epoch)
    }

    fn overtaken(&mut self, grant: Grant) {
        let sentence = format!("epoch {} was granted, which is not above those before it", grant.epoch);
        self.give_back(grant);
        self.attempt_failed(StoreError::new(ErrorKind::Unavailable, "store", sentence));
    }

    /// The outcome of the claim is unknown, which never means "no": observe the record.
    fn resolve(&mut self, error: StoreError) {
        self.tell(CoreEvent::Error(error));
        if self.calls.is_full() {
            let error =
                StoreError::new(ErrorKind::Unavailable, "store", "the store answers nothing any more");
            self.attempt_failed(error);
            return;
        }
        let pending = self.call(StoreCall::Observe);
        if let Some(attempt) = self.attempt_mut() {
            attempt.step = Step::Observing(pending);
        }
    }

    /// The answer to the observation of an attempt.
    pub(super) fn attempt_observed(&mut self, result: Result<Seen, StoreError>) {
        match result {
            Ok(seen) if seen.is_held_by(&self.who) => self.claim_again(&seen),
            Ok(seen) => {
                // The claim may still be written; its answer will be read then. Until then this counts as an error: the
                // store is slow, and nobody else is in the way.
                let error =
                    StoreError::new(ErrorKind::TimedOut, "store", "the claim got no answer and no lead");
                let Some(wake) = self.back_off(error) else { return };
                let wake = wake.max(self.wake_for(&seen));
                self.wait(wake);
            }
            Err(error) if !error.is_retryable() => self.fail(error),
            Err(error) => self.attempt_failed(error),
        }
    }

    /// The record names us, and we do not lead: an earlier claim, or an earlier leadership, of this very
    /// start. Nobody else may act on it, so it is ours to replace, under a new epoch.
    fn claim_again(&mut self, seen: &Seen) {
        if seen.paused.is_some() {
            // It has not begun to lead on that record, and must not begin now.
            self.disown(seen);
            let wake = self.wake_for(seen);
            self.wait(wake);
            return;
        }
        if !self.may_compete() {
            self.disown(seen);
            self.wait(self.now);
            return;
        }
        if !self.own_record.may_reclaim() {
            self.withdraw();
            let sentence = "claims are written and still fail; this candidate stays out for a while";
            self.attempt_failed(StoreError::new(ErrorKind::Unavailable, "store", sentence));
            return;
        }
        let again = self.claim();
        if let Some(slot) = self.attempt_mut() {
            *slot = again;
        }
    }

    fn denied(&mut self, seen: Seen) {
        if seen.is_held_by(&self.who) {
            self.claim_again(&seen);
            return;
        }
        self.judge_race(&seen);
        self.backoff.over();
        self.tell(CoreEvent::AcquireFailed { holder: seen.holder.as_ref().map(|holder| holder.id.clone()) });
        if let State::Reconnecting(_) = self.state
            && seen.leader().is_some()
        {
            // Somebody else leads: there is nothing to come back to.
            self.grace_over();
            return;
        }
        // Denied although it is kept for us: something else is in the way, until then.
        let until = seen.claimable_at().map(|free_at| free_at + self.stagger());
        let until = until.unwrap_or_else(|| self.wake_for(&seen)).min(self.handover_check_at(&seen));
        let until = until.min(self.paused_look_at(&seen));
        self.wait(until.max(self.now + DENIED_PAUSE));
        self.ask_to_preempt(&seen);
    }

    pub(super) fn attempt_failed(&mut self, error: StoreError) {
        let Some(wake) = self.back_off(error) else { return };
        self.wait(wake);
    }

    /// Ends the wait, if this is one.
    pub(super) fn wake(&mut self) {
        let now = self.now;
        match &mut self.state {
            State::Follower { wake } => *wake = now.min(*wake),
            State::Reconnecting(suspended) if suspended.attempt.is_none() => {
                suspended.wake = now.min(suspended.wake);
            }
            _ => {}
        }
    }

    /// Ends the attempt and waits.
    pub(super) fn wait(&mut self, wake: Boot) {
        match &mut self.state {
            State::Reconnecting(suspended) => {
                suspended.attempt = None;
                suspended.wake = wake;
            }
            _ => self.enter(State::Follower { wake }),
        }
    }

    /// When to try, given what was seen: at the end of what is in the way, or after the retry interval where
    /// only a change can tell. What is free for all is claimed a moment later after lost races.
    pub(super) fn wake_for(&mut self, seen: &Seen) -> Boot {
        let wake = match (seen.claimable_at(), seen.proof) {
            (Some(_), _) if seen.paused.is_none() && seen.reserved_for.as_ref() == Some(&self.who.id) => {
                self.now
            }
            (Some(free_at), _) => free_at + self.stagger(),
            (None, Proof::Released | Proof::Absent | Proof::Dead) => self.now + self.stagger(),
            (None, _) => self.now + self.settings.timing().retry(),
        };
        wake.min(self.handover_check_at(seen)).min(self.paused_look_at(seen))
    }

    /// When to look again whether a pause is still in force.
    fn paused_look_at(&self, seen: &Seen) -> Boot {
        if seen.paused.is_some() { self.now + PAUSED_LOOK } else { Boot::FOREVER }
    }

    /// The record changed while we do not lead.
    pub(super) fn changed(&mut self, seen: Seen) {
        match &mut self.state {
            State::Stopped => self.disown(&seen),
            State::Follower { wake } => {
                let before = *wake;
                // A change notice ends back-off and breaker alike: the store is alive.
                self.backoff.over();
                if seen.is_held_by(&self.who) {
                    if seen.paused.is_some() || !self.may_compete() {
                        self.disown(&seen);
                    } else if !self.own_record.may_reclaim() {
                        self.withdraw();
                    }
                }
                let again = seen.is_held_by(&self.who) && seen.paused.is_none();
                let wake = if again { self.now } else { self.wake_for(&seen) };
                // News that it is still free does not begin the wait anew.
                let wake = if self.view.is_free(self.now) { wake.min(before) } else { wake };
                self.state = State::Follower { wake };
                self.ask_to_preempt(&seen);
            }
            State::Reconnecting(suspended) if suspended.attempt.is_none() => {
                if seen.is_held_by(&self.who) || seen.leader().is_none() {
                    suspended.wake = self.now;
                } else {
                    self.grace_over();
                }
            }
            State::Leader(_) => self.leader_saw(&seen),
            State::Releasing(_) => self.stopping_saw(&seen),
            // The answer to the call under way will tell.
            State::Acquiring(_) | State::Reconnecting(_) => {}
        }
    }

    /// Whether this very grant is the one in use, so that a second answer that brings it changes nothing.
    fn acts_on(&mut self, grant: &Grant) -> bool {
        let settling = self.attempt_mut().and_then(|attempt| attempt.settling()).map(|held| held.epoch);
        settling.or(self.state.held()) == Some(grant.epoch)
    }

    /// Gives back what an attempt was granted and has not begun to lead on.
    pub(super) fn give_back_settling(&mut self) {
        if let Some(grant) = self.attempt_mut().and_then(|attempt| attempt.settling()).cloned() {
            self.give_back(grant);
        }
    }

    /// Releases, by compare-and-set, a grant that we do not lead on.
    pub(super) fn give_back(&mut self, grant: Grant) {
        self.view.spend(grant.epoch);
        self.own_record.given_back(grant.epoch);
        let working = self.leadership().map(|(epoch, _)| epoch).or(self.work.epoch());
        if working.is_some_and(|working| working <= grant.epoch) {
            // The store put this grant in the place of the one that is being worked under, so that leadership
            // is over. But the record still keeps others out: released before the work has ended, it would let
            // somebody else begin.
            self.work.owe(grant);
            self.lose(Reason::Conflict, Then::Compete);
            return;
        }
        self.call(StoreCall::Release(grant, ReleaseOptions::default()));
    }

    /// The attempt under way, in whichever state has one.
    pub(super) fn attempt_mut(&mut self) -> Option<&mut Attempt> {
        match &mut self.state {
            State::Acquiring(attempt) => Some(attempt),
            State::Reconnecting(suspended) => suspended.attempt.as_mut(),
            State::Stopped | State::Follower { .. } | State::Leader(_) | State::Releasing(_) => None,
        }
    }
}
