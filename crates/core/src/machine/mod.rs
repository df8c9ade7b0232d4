//! The state machine: [`Core`], with a module for each thing that a candidate does.

mod acquiring;
mod backoff;
mod calls;
mod ending_work;
mod health;
mod io;
mod leading;
mod own_record;
mod preempt;
mod queries;
mod reconnecting;
mod releasing;
mod renewal_jitter;
mod requests;
mod stagger;
mod state;
mod stay_away;
mod stopping;
mod validation;
mod view;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use backoff::Backoff;
pub use calls::CALLS_MAX;
use calls::OpenCalls;
use ending_work::EndingWork;
use health::HealthGate;
pub use io::{Call, Input, Output, StoreCall};
use own_record::OwnRecord;
use preempt::Preemption;
use releasing::{Cause, Then};
use renewal_jitter::RenewalJitter;
use stagger::Stagger;
use state::State;
use stay_away::StayAway;
use view::ElectionView;

use crate::{Boot, Candidate, CandidateId, CoreEvent, Epoch, ErrorKind, Rng, Settings, Signal, StoreError};

/// One candidate in one election, as a state machine.
///
/// ```text
///            Start                    granted                 Stop, StepDown, health, request
///  Stopped ────────▶ Follower ◀────▶ Acquiring ────▶ Leader ────────────────────────▶ Releasing
///     ▲                 ▲   denied,                    │ │                                │
///     │                 │   error      deadline, conflict│ session gone, deadline         │
///     │                 ├──────────────────────────────┘ ▼ (with a grace)                 │
///     │                 ├──────────────────────── Reconnecting                            │
///     └─────────────────┴─────────────────────────────────────────────────────────────────┘
/// ```
///
/// The methods of [`Core`] are of four kinds:
/// - *making*: [`Core::new`];
/// - *input*: [`Core::handle`];
/// - *output*, to be drained after each input: [`Core::poll_output`], [`Core::poll_timeout`];
/// - *queries*, which change nothing: all others.
///
/// The caller has these responsibilities:
/// - every call that comes out as an [`Output`] is made, is never dropped, and is answered under its [`Call`]
///   however late; that it took too long is noticed here;
/// - after [`Output::EndWork`] the work is stopped and [`Input::WorkEnded`] follows;
/// - `now` comes from one clock that counts suspend and does not go back.
///
/// It is pure data, so a clone is what a machine that is restored from a snapshot twice runs: the same candidate, twice. The store
/// tells the two apart; see `Lease` in `bellwether-backend`.
#[derive(Clone, Debug)]
pub struct Core {
    settings: Settings,
    who: Candidate,
    rng: Rng,
    now: Boot,
    state: State,
    outputs: VecDeque<Output>,
    /// The number of the last attempt.
    attempt: u64,
    calls: OpenCalls,
    view: ElectionView,
    backoff: Backoff,
    stay_away: StayAway,
    health: HealthGate,
    work: EndingWork,
    own_record: OwnRecord,
    preemption: Preemption,
    renewal_jitter: RenewalJitter,
    stagger: Stagger,
    /// Why the machine stopped by itself.
    failure: Option<StoreError>,
}

impl Core {
    /// A stopped candidate. The seed decides every random choice.
    pub fn new(settings: Settings, who: Candidate, seed: u64) -> Core {
        Core {
            settings,
            who,
            rng: Rng::new(seed),
            now: Boot::default(),
            state: State::Stopped,
            outputs: VecDeque::new(),
            attempt: 0,
            calls: OpenCalls::default(),
            view: ElectionView::default(),
            backoff: Backoff::default(),
            stay_away: StayAway::default(),
            health: HealthGate::default(),
            work: EndingWork::default(),
            own_record: OwnRecord::default(),
            preemption: Preemption::default(),
            renewal_jitter: RenewalJitter::default(),
            stagger: Stagger::default(),
            failure: None,
        }
    }

    /// Tells the machine something. Drain the outputs afterwards, and ask for the next time-out.
    pub fn handle(&mut self, now: Boot, input: Input) {
        // The clock does not go back; should a caller mix two readings up, the later one stays.
        self.now = self.now.max(now);
        // What time alone has ended is over before anything else is heard: an answer that comes after the
        // deadline must find no leadership that it could prolong.
        self.elapse();
        self.take(input);
        self.elapse();
    }

    /// The next thing to do; `None` when there is nothing more for now.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`Core::handle`] with [`Input::Timeout`] if nothing else comes before.
    pub fn poll_timeout(&self) -> Option<Boot> {
        let due = match &self.state {
            State::Stopped => Boot::FOREVER,
            State::Follower { wake } => self.next_try(*wake),
            State::Acquiring(attempt) => attempt.due(),
            State::Leader(leading) => self.lead_due(leading),
            State::Reconnecting(suspended) => self.reconnecting_next(suspended),
            State::Releasing(releasing) => self.releasing_next(releasing),
        };
        (due != Boot::FOREVER).then_some(due)
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Start => self.start(),
            Input::Stop => self.stop(),
            Input::StepDown { to } => self.step_down(to),
            Input::Timeout => {}
            Input::Claimed(call, outcome) => {
                self.answered(call);
                self.claimed(call, outcome);
            }
            Input::Renewed(call, outcome) => {
                self.answered(call);
                self.renewed(call, outcome);
            }
            Input::Released(call, outcome) => {
                self.answered(call);
                self.released(call, outcome);
            }
            Input::Observed(call, result) => {
                self.answered(call);
                if let Ok(seen) = &result {
                    self.learn(seen);
                }
                self.observed(call, result);
            }
            Input::Requested(call, outcome) => {
                self.answered(call);
                self.request_answered(call, outcome);
            }
            Input::Signal(signal) => self.signal(signal),
            Input::Health(ok) => self.health_checked(ok),
            Input::Validate => self.validate_now(),
            Input::WorkEnded(epoch) => self.work_ended(epoch),
        }
    }

    /// Does everything whose time has come.
    fn elapse(&mut self) {
        // Each round either changes the state or pushes a time into the future; the bound is there so that a
        // mistake shows as a late timer, not as a hang.
        for _ in 0..8 {
            if self.poll_timeout().is_none_or(|due| due > self.now) {
                return;
            }
            match &self.state {
                State::Stopped => {}
                State::Follower { .. } => self.begin_attempt(),
                State::Acquiring(_) => self.attempt_due(),
                State::Leader(_) => self.leader_due(),
                State::Reconnecting(_) => self.reconnecting_due(),
                State::Releasing(_) => self.releasing_due(),
            }
        }
    }

    fn start(&mut self) {
        if matches!(self.state, State::Stopped) {
            self.failure = None;
            self.own_record.started();
            self.backoff.over();
            self.enter(State::Follower { wake: self.now });
        }
    }

    fn stop(&mut self) {
        match &mut self.state {
            State::Stopped => {}
            State::Follower { .. } | State::Acquiring(_) | State::Reconnecting(_) => {
                // A grant in hand is given back; one that is still on its way is given back when it comes.
                self.give_back_settling();
                self.release_own_record();
                self.halt();
            }
            State::Leader(_) => self.release(Cause::Chosen, Then::Stop, None),
            State::Releasing(releasing) => releasing.then = Then::Stop,
        }
    }

    fn step_down(&mut self, to: Option<CandidateId>) {
        if matches!(self.state, State::Leader(_)) {
            self.release(Cause::Chosen, Then::Compete, to);
        }
    }

    fn signal(&mut self, signal: Signal) {
        match signal {
            Signal::Changed(seen) => {
                self.learn(&seen);
                self.changed(seen);
            }
            Signal::Requested(request) => self.requested(request),
            Signal::Doubt => self.doubt(),
            Signal::Gone => self.session_gone(),
            Signal::Restored => self.restored(),
        }
    }

    fn work_ended(&mut self, epoch: Epoch) {
        if self.work.ended(epoch) {
            if let Some(grant) = self.work.take_owed() {
                self.give_back(grant);
            }
            self.write_release(epoch);
        }
    }

    /// A call was answered.
    fn answered(&mut self, call: Call) {
        if self.calls.answered(call) {
            // The store is back, and a call can be made: no need to wait for the end of the back-off.
            self.wake();
        }
    }

    fn halt(&mut self) {
        self.enter(State::Stopped);
        self.tell(CoreEvent::Stopped);
    }

    fn fail(&mut self, error: StoreError) {
        self.release_own_record();
        // Nothing will come back: what was suspended is lost, and those who wait for the end must hear it.
        if let State::Reconnecting(suspended) = &self.state {
            let lost = suspended.as_lost();
            self.tell(lost);
        }
        self.tell(CoreEvent::Error(error.clone()));
        self.failure = Some(error);
        self.halt();
    }

    fn enter(&mut self, state: State) {
        let from = self.state.name();
        let to = state.name();
        self.state = state;
        if from != to {
            self.tell(CoreEvent::StateChanged { from, to });
        }
    }

    fn tell(&mut self, what: CoreEvent) {
        self.outputs.push_back(Output::Event { at: self.now, attempt: self.attempt, what });
    }

    fn timed_out(&self, what: &str) -> StoreError {
        let limit = self.settings.timing().call_timeout();
        StoreError::new(ErrorKind::TimedOut, "store", format!("no answer to {what} within {limit:?}"))
    }
}
