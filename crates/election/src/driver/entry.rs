//! One start of a candidate, as the driver runs it: the machine, the life of its work, and what its handles see.

use std::sync::Arc;

use bellwether_core::{
    Boot, Call, CandidateId, Core, Epoch, ErrorKind, Input, Output, Reason, StateName, StoreCall, StoreError,
};
use tokio::sync::{mpsc, oneshot};

use super::calls::{Caller, Calls};
use super::history::HistoryWriter;
use super::replies::Replies;
use super::{Commands, DriverLink, Entrant, Reply, StartKey};
use crate::Error;
use crate::connection::Connection;
use crate::event::{Event, What};
use crate::hooks::HookCall;
use crate::leadership::{Leadership, Over};
use crate::log::{self, EventLog};
use crate::observer::Observer;
use crate::shared::{Shared, Snapshot};
use crate::status::Status;

pub(super) struct Entry {
    key: StartKey,
    pub(super) core: Core,
    pub(super) shared: Arc<Shared>,
    pub(super) timer: Option<Boot>,
    /// Entered, and not yet begun.
    pub(super) waits: bool,
    status: Status,
    hooks: Option<mpsc::UnboundedSender<HookCall>>,
    driver: Commands,
    span: tracing::Span,
    log: EventLog,
    observer: Option<Box<Observer>>,
    leadership: Option<Leadership>,
    ending: Option<Ending>,
    history: HistoryWriter,
    /// The look that those who validate wait for.
    look: Option<Call>,
    replies: Replies,
    abandoned: bool,
}

/// Work that has been told to stop: first the work, then the hook.
struct Ending {
    leadership: Leadership,
    by: Boot,
    /// From when the demotion hook was called: cuts it off.
    hook: Option<oneshot::Sender<()>>,
}

impl Entry {
    pub(super) fn new(key: StartKey, entrant: Entrant, waits: bool) -> Entry {
        let Entrant { core, shared, hooks, started, driver, observer } = entrant;
        let status = Status::new(&shared.election, core.who());
        let span = log::span(&shared.election, core.who());
        shared.snapshot.send_modify(|snapshot| {
            *snapshot = Snapshot { running: true, ..Snapshot::new(status.clone()) };
        });
        Entry {
            key,
            core,
            shared,
            timer: None,
            waits,
            status,
            hooks,
            driver,
            span,
            log: EventLog::default(),
            observer,
            leadership: None,
            ending: None,
            history: HistoryWriter::default(),
            look: None,
            replies: Replies::new(started),
            abandoned: false,
        }
    }

    /// Tells the machine something and does what it wants.
    pub(super) fn feed(&mut self, input: Input, calls: &mut Calls) {
        let looked = match &input {
            // A look that was given up answers late: what it saw is older than the question.
            Input::Observed(call, result) if self.look == Some(*call) => Some(result.as_ref().err().cloned()),
            _ => None,
        };
        if confirms(&input) {
            self.status.last_success = Some(self.shared.time.boot());
            self.status.connection = Connection::Connected;
            self.log.answered(&self.shared.election, self.core.who());
        }
        if let Some(now) = Connection::told_by(&input) {
            self.status.connection = now;
        }
        if let Some(observer) = &mut self.observer {
            observer.input(self.shared.time.boot(), self.core.who(), &input);
        }
        let mut next = Some(input);
        // Work that ends at once is reported at once, in the same turn.
        while let Some(input) = next.take() {
            self.core.handle(self.shared.time.boot(), input);
            while let Some(output) = self.core.poll_output() {
                if let Some(follow_up) = self.perform(output, calls) {
                    next = Some(follow_up);
                }
            }
        }
        if let Some(error) = looked {
            let leading = self.core.leadership().map(|(epoch, _)| epoch);
            self.replies.validated(error.as_ref(), leading);
        }
        if self.core.state() != StateName::Acquiring {
            self.replies.started(self.core.failure());
        }
        self.publish();
    }

    fn perform(&mut self, output: Output, calls: &mut Calls) -> Option<Input> {
        let caller = Caller { key: self.key, on: &self.shared.election, span: &self.span };
        match output {
            Output::Call(call, what) => {
                match what {
                    StoreCall::Claim(_) => self.status.attempts += 1,
                    StoreCall::Observe => self.look = Some(call),
                    _ => {}
                }
                let watch = self.observer.as_ref().map(|observer| observer.call(&self.shared.time, &what));
                calls.make(caller, call, what, watch);
            }
            Output::Believe { epoch, until } => self.believe(epoch, until),
            Output::EndWork { epoch, by, why } => return self.end_work(epoch, by, why),
            Output::ExtendStop { epoch, by } => self.extend_stop(epoch, by),
            Output::Event { at, attempt, what } => {
                let what = What::from(what);
                self.history.write(self.shared.time.wall(), self.core.who(), &what, caller, calls);
                let begun = match &what {
                    What::Acquired { epoch, deadline } | What::Resumed { epoch, deadline } => {
                        Some((*epoch, *deadline))
                    }
                    _ => None,
                };
                self.tell(at, attempt, what);
                // So that whoever reads them knows that renewals are told, also of a leadership that was never renewed.
                if let Some((epoch, deadline)) = begun {
                    self.tell_renewal(at, epoch, deadline);
                }
            }
        }
        None
    }

    fn believe(&mut self, epoch: Epoch, until: Boot) {
        match &self.leadership {
            Some(leadership) if leadership.epoch() == epoch => {
                leadership.extend(until);
                self.tell_renewal(self.shared.time.boot(), epoch, until);
            }
            _ => {
                let who = self.core.who().clone();
                let (on, time) = (self.shared.election.clone(), self.shared.time.clone());
                let driver = DriverLink::new(self.key, &self.driver);
                let leadership = Leadership::new(on, who, epoch, until, time, driver);
                self.status.leaderships += 1;
                if let Some(hooks) = &self.hooks {
                    // Its receiver lives as long as this sender.
                    let _ = hooks.send(HookCall::Become(leadership.clone()));
                }
                self.leadership = Some(leadership);
            }
        }
        self.shared.believe(until);
    }

    /// The work must stop. Returns the report that it has, if there was nothing to stop.
    fn end_work(&mut self, epoch: Epoch, by: Boot, why: Option<Reason>) -> Option<Input> {
        self.shared.disbelieve();
        if let Some(ending) = &mut self.ending
            && ending.leadership.epoch() == epoch
        {
            ending.by = ending.by.min(by);
            ending.leadership.end(why.map_or(Over::Released, Over::Lost), by);
            return None;
        }
        let leadership = self.leadership.take().filter(|leadership| leadership.epoch() == epoch)?;
        let idle = leadership.end(why.map_or(Over::Released, Over::Lost), by);
        self.ending = Some(Ending { leadership, by, hook: None });
        if idle { self.work_gone(epoch) } else { None }
    }

    /// The work may take until then to stop.
    fn extend_stop(&mut self, epoch: Epoch, by: Boot) {
        if let Some(ending) = self.ending.as_mut().filter(|ending| ending.leadership.epoch() == epoch) {
            ending.by = by;
            ending.leadership.extend_stop(by);
        }
    }

    /// The last piece of work was dropped: now the demotion hook, if there is one.
    pub(super) fn work_gone(&mut self, epoch: Epoch) -> Option<Input> {
        let ending = self.ending.as_mut().filter(|ending| ending.leadership.epoch() == epoch)?;
        if ending.hook.is_some() {
            return None;
        }
        let (hook, cut) = oneshot::channel();
        let job = HookCall::Lose { leadership: ending.leadership.clone(), by: ending.by, cut };
        if let Some(hooks) = &self.hooks
            && hooks.send(job).is_ok()
        {
            ending.hook = Some(hook);
            return None;
        }
        self.ending = None;
        Some(Input::WorkEnded(epoch))
    }

    pub(super) fn hook_ended(&mut self, epoch: Epoch) -> Option<Input> {
        self.ending.take_if(|ending| ending.leadership.epoch() == epoch && ending.hook.is_some())?;
        Some(Input::WorkEnded(epoch))
    }

    /// Cuts the demotion hook off, because the caller does not wait any longer. Its end is still awaited: a hook that blocks its
    /// thread goes on, and nothing may be released while it runs.
    pub(super) fn hurry(&mut self) {
        if let Some(hook) = self.ending.as_mut().and_then(|ending| ending.hook.as_mut()) {
            let (spent, _) = oneshot::channel();
            let _ = std::mem::replace(hook, spent).send(());
        }
    }

    pub(super) fn panicked(&mut self, epoch: Epoch) -> Option<Input> {
        self.report(format!("the work of epoch {epoch} panicked; the leadership is given up"));
        let leading = self.core.leadership().is_some_and(|(leading, _)| leading == epoch);
        leading.then_some(Input::StepDown { to: None })
    }

    pub(super) fn step_down(&mut self, to: Option<CandidateId>, reply: Reply<()>) -> Option<Input> {
        match self.core.leadership() {
            Some((epoch, _)) => {
                self.replies.await_end(epoch, reply);
                Some(Input::StepDown { to })
            }
            // Already on its way down: wait with the others.
            None if self.core.state() == StateName::Releasing => {
                // The next end of a leadership is the end of this one, whatever its number.
                self.replies.await_end(Epoch::ZERO, reply);
                None
            }
            None => {
                let cooling = self.core.in_cooldown(self.shared.time.boot()).is_some();
                let _ = reply.send(Err(if cooling { Error::InCooldown } else { Error::NotLeader }));
                None
            }
        }
    }

    pub(super) fn stop(&mut self, reply: Reply<()>) -> Input {
        self.replies.await_stop(reply);
        self.leave()
    }

    pub(super) fn abandon(&mut self) -> Input {
        self.abandoned = true;
        self.leave()
    }

    fn leave(&self) -> Input {
        self.shared.snapshot.send_modify(|snapshot| snapshot.stopping = true);
        Input::Stop
    }

    pub(super) fn validate(&mut self, reply: Reply<bool>) -> Option<Input> {
        match self.core.leadership() {
            Some((epoch, _)) => {
                self.replies.await_validation(epoch, reply);
                Some(Input::Validate)
            }
            None => {
                let _ = reply.send(Err(Error::NotLeader));
                None
            }
        }
    }

    /// Something that user code did wrong: an event, and nothing else.
    pub(super) fn report(&mut self, said: String) {
        let error = StoreError::new(ErrorKind::Bug, "hook", said);
        self.tell(self.shared.time.boot(), self.status.attempts, What::Error(error));
    }

    fn tell(&mut self, at: Boot, attempt: u64, what: What) {
        let leading = self.leadership.as_ref().map(Leadership::epoch);
        match &what {
            What::StateChanged { .. } => self.status.last_transition = Some(at),
            What::Error(error) => {
                self.status.last_error = Some(error.clone());
                // The store was tried once: whoever waits for the start has waited long enough.
                self.replies.started(self.core.failure());
            }
            What::Released { epoch, .. } | What::Lost { epoch, .. } | What::Suspended { epoch, .. } => {
                self.replies.ended(*epoch);
            }
            _ => {}
        }
        if let Some(now) = Connection::told_by_event(&what) {
            self.status.connection = now;
        }
        let event = Event {
            time: self.shared.time.wall(),
            boot: at,
            election: self.shared.election.clone(),
            candidate: self.core.who().clone(),
            epoch: what.epoch().or(leading),
            attempt,
            what,
        };
        self.log.event(&event);
        if let Some(observer) = &mut self.observer {
            observer.event(&event);
        }
        self.shared.publish(&event);
    }

    fn tell_renewal(&self, at: Boot, epoch: Epoch, deadline: Boot) {
        self.shared.publish_renewal(|| Event {
            time: self.shared.time.wall(),
            boot: at,
            election: self.shared.election.clone(),
            candidate: self.core.who().clone(),
            epoch: Some(epoch),
            attempt: self.status.attempts,
            what: What::Renewed { epoch, deadline },
        });
    }

    fn publish(&mut self) {
        let leading = self.core.leadership();
        self.status.state = self.core.state();
        self.status.leader = self.core.leader().cloned();
        self.status.leader_proof = self.core.leader_proof();
        self.status.epoch = leading.map(|(epoch, _)| epoch);
        self.status.deadline = leading.map(|(_, deadline)| deadline);
        self.status.highest_epoch = self.core.highest_epoch();
        self.status.cooldown_until = self.core.in_cooldown(self.shared.time.boot());
        self.status.paused_until = self.core.paused_until(self.shared.time.boot());
        if let Some(observer) = &self.observer {
            observer.connection(self.status.connection);
            observer.epoch(self.status.highest_epoch);
        }
        self.shared.snapshot.send_modify(|snapshot| {
            snapshot.status = self.status.clone();
            snapshot.leadership = self.leadership.clone();
            snapshot.failure = self.core.failure().cloned();
            snapshot.stopping |= self.core.state() == StateName::Stopped;
            snapshot.work_ending = self.ending.is_some();
        });
    }

    pub(super) fn remembered(&mut self) {
        self.history.written();
    }

    /// Stopped, and nothing more can come.
    pub(super) fn is_quiet(&self) -> bool {
        self.core.is_quiet() && self.history.is_written()
    }

    /// The driver is going away, with its runtime or by a mistake of ours.
    pub(super) fn orphaned(&mut self) {
        if let Some(leadership) = self.leadership.take() {
            leadership.end(Over::Lost(Reason::Connection), self.shared.time.boot());
        }
        self.shared.orphaned();
    }

    /// Nothing more can come: everybody who waits is answered.
    pub(super) fn left(&mut self) {
        self.shared.disbelieve();
        self.shared.snapshot.send_modify(|snapshot| {
            snapshot.running = false;
            snapshot.stopping = false;
            snapshot.leadership = None;
        });
        self.replies.left(self.core.failure());
        if self.abandoned {
            self.shared.close();
        }
    }
}

/// Whether the store confirmed something.
fn confirms(input: &Input) -> bool {
    use bellwether_core::Outcome::{Denied, Done};
    matches!(
        input,
        Input::Claimed(_, Done(_) | Denied(_))
            | Input::Renewed(_, Done(_) | Denied(_))
            | Input::Released(_, Done(()) | Denied(_))
            | Input::Observed(_, Ok(_))
    )
}
