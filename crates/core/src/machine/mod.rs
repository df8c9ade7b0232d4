//! The machine: [`Core`], with a file for each thing that a candidate does.

mod acquiring;
mod backoff;
mod calls;
mod health;
mod io;
mod leading;
mod leftover;
mod preempt;
mod queries;
mod reconnecting;
mod releasing;
mod renewal_jitter;
mod requests;
mod state;
mod stopping;
mod validate;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};

use backoff::Backoff;
pub use calls::CALLS_MAX;
pub use io::{Call, Input, Output};
use leftover::Leftover;
use preempt::Asked;
use state::State;

use crate::{
    Boot, Candidate, CandidateId, CoreEvent, Epoch, Error, ErrorKind, Grant, Proof, Rng, Seen, Settings,
    Signal,
};

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
/// - *looking*, which changes nothing: all others.
///
/// What the caller owes:
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
    /// Renewals are spread in time; see [`Core::jitter_renewals`].
    renewal_jitter: bool,
    state: State,
    now: Boot,
    outputs: VecDeque<Output>,
    last_call: u64,
    attempt: u64,
    unanswered: BTreeSet<Call>,
    /// The highest epoch ever seen here.
    floor: Epoch,
    /// Who leads as far as the store showed; the outer `None` before anything was seen.
    leader: Option<Option<CandidateId>>,
    /// What is known about the life of the holder.
    proof: Option<Proof>,
    backoff: Backoff,
    /// Not standing before then: a cooldown.
    cooldown_until: Boot,
    /// Nor before then, after letting go, unless somebody else has led meanwhile: else the quickest to claim would be the one
    /// that has just made room.
    yield_until: Boot,
    health_failures: u32,
    /// `None` until the first result, where there is a health check.
    healthy: Option<bool>,
    /// The leadership whose work has been told to stop and has not yet reported its end.
    ending: Option<Epoch>,
    /// The highest epoch that was led or given back here: it never counts again.
    spent: Epoch,
    /// To be given back as soon as that work has ended.
    owed: Option<Grant>,
    /// Stopped without a release, on purpose: its record is left to run out.
    kept: Option<Epoch>,
    /// A record in our name that we do not lead on.
    leftover: Leftover,
    /// The leadership that this candidate has asked to make room for it.
    asked: Option<Asked>,
    /// Why the machine stopped by itself.
    failure: Option<Error>,
}

impl Core {
    /// A stopped candidate. The seed decides every random choice.
    pub fn new(settings: Settings, who: Candidate, seed: u64) -> Core {
        Core {
            settings,
            who,
            rng: Rng::new(seed),
            renewal_jitter: false,
            state: State::Stopped,
            now: Boot::default(),
            outputs: VecDeque::new(),
            last_call: 0,
            attempt: 0,
            unanswered: BTreeSet::new(),
            floor: Epoch::ZERO,
            leader: None,
            proof: None,
            backoff: Backoff::default(),
            cooldown_until: Boot::default(),
            yield_until: Boot::default(),
            health_failures: 0,
            healthy: None,
            ending: None,
            spent: Epoch::ZERO,
            owed: None,
            kept: None,
            leftover: Leftover::default(),
            asked: None,
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
            State::Reconnecting(suspended) => {
                let try_at = match &suspended.attempt {
                    Some(attempt) => attempt.due(),
                    None => self.next_try(suspended.wake),
                };
                suspended.until.min(try_at)
            }
            State::Releasing(letting) => self.releasing_next(letting),
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
            Input::Looked(call, result) => {
                self.answered(call);
                if let Ok(seen) = &result {
                    self.note(seen);
                }
                self.looked(call, result);
            }
            Input::Requested(call, outcome) => {
                self.answered(call);
                self.request_answered(call, outcome);
            }
            Input::Signal(signal) => self.signal(signal),
            Input::Health(ok) => self.health(ok),
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
            self.kept = None;
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
                self.release_leftover();
                self.halt();
            }
            State::Leader(_) => self.let_go(state::Why::Chosen, state::Then::Stop, None),
            State::Releasing(letting) => letting.then = state::Then::Stop,
        }
    }

    fn step_down(&mut self, to: Option<CandidateId>) {
        if matches!(self.state, State::Leader(_)) {
            self.let_go(state::Why::Chosen, state::Then::Stand, to);
        }
    }

    fn signal(&mut self, signal: Signal) {
        match signal {
            Signal::Changed(seen) => {
                self.note(&seen);
                self.changed(seen);
            }
            Signal::Requested(request) => self.asked_to(request),
            Signal::Granted(grant) => self.granted_unasked(grant),
            Signal::Doubt => self.doubt(),
            Signal::Gone => self.session_gone(),
            Signal::Restored => self.restored(),
        }
    }

    fn work_ended(&mut self, epoch: Epoch) {
        if self.ending == Some(epoch) {
            self.ending = None;
            if let Some(grant) = self.owed.take() {
                self.give_back(grant);
            }
            self.write_release(epoch);
        }
    }

    /// Remembers what a look showed: the highest epoch, and who leads.
    fn note(&mut self, seen: &Seen) {
        self.proof = Some(seen.proof);
        self.note_leftover(seen);
        if let Some(epoch) = seen.epoch {
            self.floor = self.floor.max(epoch);
        }
        // What the store says of ourselves is old news: we announce our own leaderships when they start. So is
        // what it says of the time before the present one.
        let old = self.leadership().is_some() && !self.overtaken_by(seen);
        if !seen.is_held_by(&self.who) && !old {
            if seen.leader().is_some() && seen.epoch.is_none_or(|epoch| epoch > self.spent) {
                // The room is taken. Whoever took it may let go at any moment, and then we are the one to take over.
                self.yield_until = Boot::default();
            }
            self.leader_is(seen.leader().cloned(), seen.epoch);
        }
    }

    fn leader_is(&mut self, leader: Option<CandidateId>, epoch: Option<Epoch>) {
        if self.leader.as_ref() != Some(&leader) {
            self.leader = Some(leader.clone());
            let epoch = epoch.filter(|_| leader.is_some());
            self.tell(CoreEvent::LeaderChanged { leader, epoch });
        }
    }

    fn halt(&mut self) {
        self.enter(State::Stopped);
        self.tell(CoreEvent::Stopped);
    }

    fn fail(&mut self, error: Error) {
        self.release_leftover();
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

    fn tell(&mut self, event: CoreEvent) {
        self.outputs.push_back(Output::Event { at: self.now, attempt: self.attempt, event });
    }

    fn timed_out(&self, what: &str) -> Error {
        let limit = self.settings.timing().call_timeout();
        Error::new(ErrorKind::TimedOut, "store", format!("no answer to {what} within {limit:?}"))
    }
}
