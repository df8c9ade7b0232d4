//! One process: the real core and the real lease or sessions, its clock, its calls under way, its work.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bellwether_backend::{Backend, Lease, Notices};
use bellwether_core::{
    Boot, Call, Candidate, Core, ElectionName, Epoch, Input, Signal, StateName, StoreCall,
};

use crate::call::{Purpose, Slot};
use crate::clock::Machine;
use crate::connection::{Facts, SharedConnection, SimRegister, lock};
use crate::invariants::alternation::Alternation;
use crate::invariants::cooldown::Cooldown;
use crate::invariants::exclusion::SimLeadership;
use crate::invariants::grants::Grants;
use crate::invariants::health::HealthInvariant;
use crate::invariants::quiet::Quiet;
use crate::invariants::requests::Requests;
use crate::session::line::Stalled;
use crate::session::wire::SharedSessionMail;
use crate::time::Nanos;

/// What a call comes to; the outsider's come to nothing.
type Answered = Option<Input>;

/// A call of the backend under way.
pub struct Task {
    future: Pin<Box<dyn Future<Output = Answered> + Send>>,
    purpose: Purpose,
}

/// How a process is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// What it sends is lost.
    Calls,
    /// What it sends arrives; the answers are lost.
    Answers,
}

/// SimWork that is protected by a leadership.
#[derive(Clone, Copy, Debug)]
pub struct SimWork {
    /// The leadership.
    pub epoch: Epoch,
    /// When it began, in true time.
    pub since: Nanos,
    /// On the process's own clock: killed then.
    pub until: Boot,
}

/// What runs.
pub struct Process {
    /// The state machine under test.
    pub core: Core,
    /// The lease under test, or the sessions.
    pub backend: Arc<dyn Backend>,
    /// Its calls under way, oldest first.
    pub tasks: Vec<Task>,
    signals: Notices,
}

/// One process, alive or dead, and the machine it runs on.
pub struct Node {
    /// Which candidate it is a start of; `None` for the outsider.
    pub slot: Option<usize>,
    /// Its id and incarnation.
    pub who: Candidate,
    /// Its clocks.
    pub machine: Machine,
    /// Its connection.
    pub connection: SharedConnection,
    /// What passes between it and a server of sessions.
    pub mail: SharedSessionMail,
    /// What waits for a cut to end.
    pub stalled: Vec<Stalled>,
    /// The lease, where the store is a register.
    pub lease: Option<Arc<Lease<SimRegister>>>,
    /// The beats that it has sent, and those of the process that it is a clone of.
    pub beats: BTreeSet<u64>,
    /// What runs, until it crashes.
    pub process: Option<Process>,
    /// Stands still.
    pub frozen: bool,
    /// Cut off from the store.
    pub cut: Option<Cut>,
    /// The number of its connection.
    pub connection_number: u32,
    /// Whether that stands.
    pub connected: bool,
    /// Where it waits for answers.
    pub pending: Vec<Slot>,
    /// When its next time-out comes, and what that was computed from.
    pub timer: (Nanos, Option<Boot>),
    /// Its work.
    pub work: Option<SimWork>,
    /// SimWork that ended while it stood still.
    pub work_over: Option<Epoch>,
    /// A start is planned.
    pub start_planned: bool,
    /// Its health check fails.
    pub sick: bool,
    /// Its last call failed, and it has heard nothing since that ends a pause.
    pub troubled: bool,
    /// Judged by itself.
    pub alternation: Alternation,
    /// Judged by itself.
    pub grants: Grants,
    /// Judged by itself.
    pub quiet: Quiet,
    /// Judged by itself.
    pub requests: Requests,
    /// Judged by itself.
    pub cooldown: Cooldown,
    /// Judged by itself.
    pub health: HealthInvariant,
}

impl Node {
    /// A process that has not done anything.
    pub fn new(
        slot: Option<usize>,
        machine: Machine,
        connection: SharedConnection,
        mail: SharedSessionMail,
        core: Core,
        backend: Arc<dyn Backend>,
    ) -> Node {
        let who = core.who().clone();
        let signals = backend.signals();
        let process = Process { core, backend, tasks: Vec::new(), signals };
        Node {
            slot,
            who,
            machine,
            connection,
            mail,
            stalled: Vec::new(),
            lease: None,
            beats: BTreeSet::new(),
            process: Some(process),
            frozen: false,
            cut: None,
            connection_number: 0,
            connected: true,
            pending: Vec::new(),
            timer: (Nanos::MAX, None),
            work: None,
            work_over: None,
            start_planned: false,
            sick: false,
            troubled: false,
            alternation: Alternation::default(),
            grants: Grants::default(),
            quiet: Quiet::default(),
            requests: Requests::default(),
            cooldown: Cooldown::default(),
            health: HealthInvariant::default(),
        }
    }

    /// Another incarnation takes the place of one that has stopped and has nothing under way.
    pub fn begin_anew(&mut self, core: Core) {
        self.who = core.who().clone();
        self.timer = (Nanos::MAX, None);
        (self.start_planned, self.troubled) = (false, false);
        (self.alternation, self.grants) = (Alternation::default(), Grants::default());
        (self.requests, self.cooldown, self.health) = Default::default();
        if let Some(process) = &mut self.process {
            process.core = core;
        }
    }

    /// Whether it can be copied: nothing is under way, nothing is planned for it alone, and it stands by or leads.
    pub fn is_at_rest(&self) -> bool {
        let Some(process) = &self.process else { return false };
        let believed = process.core.leadership().map(|(epoch, _)| epoch);
        self.runs()
            && process.tasks.is_empty()
            && matches!(process.core.state(), StateName::Follower | StateName::Leader)
            && self.work.map(|work| work.epoch) == believed
            && self.connected
            && self.cut.is_none()
            && !self.sick
    }

    /// The same process once more, on a connection of its own.
    pub fn cloned(&self, facts: Arc<Facts>) -> Option<Node> {
        let (process, lease) = (self.process.as_ref()?, self.lease.as_ref()?);
        let (machine, connection) = (self.machine.cloned(), lock(&self.connection).cloned());
        let register = SimRegister::new(Arc::clone(&connection), facts, false);
        let lease = Arc::new(lease.cloned(register, machine.face()));
        let backend: Arc<dyn Backend> = Arc::clone(&lease) as Arc<dyn Backend>;
        let mail = SharedSessionMail::default();
        let clone = Node::new(self.slot, machine, connection, mail, process.core.clone(), backend);
        Some(Node {
            lease: Some(lease),
            beats: self.beats.clone(),
            work: self.work,
            troubled: self.troubled,
            alternation: self.alternation.clone(),
            grants: self.grants.clone(),
            quiet: self.quiet.clone(),
            requests: self.requests.clone(),
            cooldown: self.cooldown.clone(),
            health: self.health.clone(),
            ..clone
        })
    }

    /// Alive, and not standing still.
    pub fn runs(&self) -> bool {
        self.process.is_some() && !self.frozen
    }

    /// The leadership in force at that instant, by the work or by the core's own belief.
    pub fn leadership(&self, now: Nanos) -> Option<SimLeadership> {
        let process = self.process.as_ref()?;
        let boot = self.machine.boot(now);
        let working = self.work.filter(|work| boot < work.until).map(|work| work.epoch);
        let believed = process.core.leadership().filter(|(_, deadline)| boot < *deadline);
        let epoch = working.or(believed.map(|(epoch, _)| epoch))?;
        Some(SimLeadership { who: self.who.incarnation, epoch })
    }

    /// The next news, if there is any to read.
    pub fn poll_signal(&mut self) -> Option<Signal> {
        let process = self.process.as_mut()?;
        lock(&self.connection).purpose = Purpose::Look;
        match process.signals.as_mut().poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(notice)) => Some(notice.signal),
            Poll::Ready(None) | Poll::Pending => None,
        }
    }

    /// The next answered call from position `from` on, or `None` when all wait.
    pub fn poll_task(&mut self, from: &mut usize) -> Option<(Answered, Purpose)> {
        let process = self.process.as_mut()?;
        while let Some(task) = process.tasks.get_mut(*from) {
            lock(&self.connection).purpose = task.purpose;
            match task.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answered) => {
                    let purpose = task.purpose;
                    drop(process.tasks.remove(*from));
                    return Some((answered, purpose));
                }
                Poll::Pending => *from += 1,
            }
        }
        None
    }

    /// Starts a call of the backend that the core wants.
    pub fn begin(&mut self, on: &ElectionName, call: Call, what: StoreCall) {
        let Some(process) = self.process.as_mut() else { return };
        let (backend, on) = (Arc::clone(&process.backend), on.clone());
        let me = self.who.incarnation;
        let (purpose, future): (_, Pin<Box<dyn Future<Output = Answered> + Send>>) = match what {
            StoreCall::Claim(bid) => (
                Purpose::Claim(me),
                Box::pin(async move { Some(Input::Claimed(call, backend.claim(&on, &bid).await)) }),
            ),
            StoreCall::Renew { grant, sent } => (
                Purpose::Renew(me, grant.epoch),
                Box::pin(async move { Some(Input::Renewed(call, backend.renew(&on, &grant, sent).await)) }),
            ),
            StoreCall::Release(grant, options) => (
                Purpose::Release(me, grant.epoch),
                Box::pin(
                    async move { Some(Input::Released(call, backend.release(&on, &grant, &options).await)) },
                ),
            ),
            StoreCall::Observe => (
                Purpose::Look,
                Box::pin(async move { Some(Input::Observed(call, backend.observe(&on).await)) }),
            ),
            StoreCall::Request(request) => (
                Purpose::Request(request.epoch),
                Box::pin(async move { Some(Input::Requested(call, backend.request(&on, &request).await)) }),
            ),
        };
        process.tasks.push(Task { future, purpose });
    }

    /// Starts something that the outsider does.
    pub fn begin_outside(
        &mut self,
        purpose: Purpose,
        future: Pin<Box<dyn Future<Output = Answered> + Send>>,
    ) {
        if let Some(process) = &mut self.process {
            process.tasks.push(Task { future, purpose });
        }
    }
}
