//! One process: its candidates, the real lease or sessions that they share, its clock, its calls under way.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bellwether_backend::{Backend, Lease, Notice, Notices};
use bellwether_core::{Call, Incarnation, Input, StoreCall};

use crate::call::{Purpose, Slot};
use crate::candidate::SimCandidate;
use crate::clock::Machine;
use crate::connection::{Facts, SharedConnection, SimRegister, lock};
use crate::invariants::exclusion::SimLeadership;
use crate::key::ElectionKey;
use crate::session::line::Stalled;
use crate::session::wire::SharedSessionMail;
use crate::time::Nanos;
use crate::wakes::Wakes;

/// What a call comes to; the outsider's come to nothing.
type Answered = Option<Input>;

/// A call of the backend under way.
pub struct Task {
    future: Pin<Box<dyn Future<Output = Answered> + Send>>,
    purpose: Purpose,
    /// Which candidate waits for it.
    place: usize,
}

/// How a process is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// What it sends is lost.
    Calls,
    /// What it sends arrives; the answers are lost.
    Answers,
}

/// What runs.
pub struct Process {
    /// The lease under test, or the sessions: one for all candidates.
    pub backend: Arc<dyn Backend>,
    /// Its calls under way, oldest first.
    pub tasks: Vec<Task>,
    signals: Notices,
    wakes: Arc<Wakes>,
}

/// One process, alive or dead, and the machine it runs on.
pub struct Node {
    /// Which plan it is a start of; `None` for the outsider.
    pub slot: Option<usize>,
    /// Its candidates. Those of a dead process are dead too.
    pub candidates: Vec<SimCandidate>,
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
    pub beats: BTreeMap<ElectionKey, BTreeSet<u64>>,
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
}

impl Node {
    /// A process that has not done anything.
    pub fn new(
        slot: Option<usize>,
        candidates: Vec<SimCandidate>,
        machine: Machine,
        connection: SharedConnection,
        mail: SharedSessionMail,
        backend: Arc<dyn Backend>,
    ) -> Node {
        let signals = backend.signals();
        Node {
            slot,
            candidates,
            machine,
            connection,
            mail,
            stalled: Vec::new(),
            lease: None,
            beats: BTreeMap::new(),
            process: Some(Process { backend, tasks: Vec::new(), signals, wakes: Arc::default() }),
            frozen: false,
            cut: None,
            connection_number: 0,
            connected: true,
            pending: Vec::new(),
        }
    }

    /// Whether it can be copied: nothing is under way, and all of its candidates are at rest.
    pub fn is_at_rest(&self) -> bool {
        self.runs()
            && self.process.as_ref().is_some_and(|process| process.tasks.is_empty())
            && self.candidates.iter().all(SimCandidate::is_at_rest)
            && self.connected
            && self.cut.is_none()
    }

    /// The same process once more, on a connection of its own.
    pub fn cloned(&self, facts: Arc<Facts>) -> Option<Node> {
        let lease = self.lease.as_ref().filter(|_| self.process.is_some())?;
        let (machine, connection) = (self.machine.cloned(), lock(&self.connection).cloned());
        let register = SimRegister::new(Arc::clone(&connection), facts, false);
        let lease = Arc::new(lease.cloned(register, machine.face()));
        let backend: Arc<dyn Backend> = Arc::clone(&lease) as Arc<dyn Backend>;
        let candidates = self.candidates.iter().map(SimCandidate::cloned).collect();
        let clone =
            Node::new(self.slot, candidates, machine, connection, SharedSessionMail::default(), backend);
        Some(Node { lease: Some(lease), beats: self.beats.clone(), ..clone })
    }

    /// Alive, and not standing still.
    pub fn runs(&self) -> bool {
        self.process.is_some() && !self.frozen
    }

    /// The leadership of one of its candidates in force at that instant.
    pub fn leadership(&self, place: usize, now: Nanos) -> Option<SimLeadership> {
        self.process.as_ref()?;
        self.candidates[place].leadership(self.machine.boot(now))
    }

    /// Which of its candidates is that incarnation.
    pub fn candidate_of(&self, who: Incarnation) -> Option<&SimCandidate> {
        self.candidates.iter().find(|candidate| candidate.who.incarnation == who)
    }

    /// Whether it has written this beat.
    pub fn has_written(&self, key: ElectionKey, beat: u64) -> bool {
        self.beats.get(&key).is_some_and(|beats| beats.contains(&beat))
    }

    /// Whether something in it can go on that could not before.
    pub fn is_woken(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.wakes.take())
    }

    /// The next news, if there is any to read.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        let process = self.process.as_mut()?;
        lock(&self.connection).purpose = Purpose::Look;
        let waker = process.wakes.waker();
        match process.signals.as_mut().poll_next(&mut Context::from_waker(&waker)) {
            Poll::Ready(notice) => notice,
            Poll::Pending => None,
        }
    }

    /// The next answered call from position `from` on, with the candidate that waits for it, or `None` when all wait.
    pub fn poll_task(&mut self, from: &mut usize) -> Option<(Answered, Purpose, usize)> {
        let process = self.process.as_mut()?;
        let waker = process.wakes.waker();
        while let Some(task) = process.tasks.get_mut(*from) {
            lock(&self.connection).purpose = task.purpose;
            match task.future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(answered) => {
                    let (purpose, place) = (task.purpose, task.place);
                    drop(process.tasks.remove(*from));
                    return Some((answered, purpose, place));
                }
                Poll::Pending => *from += 1,
            }
        }
        None
    }

    /// Starts a call of the backend that a core wants.
    pub fn begin(&mut self, place: usize, call: Call, what: StoreCall) {
        let candidate = &self.candidates[place];
        let (on, me) = (candidate.key.name(), candidate.who.incarnation);
        let Some(process) = self.process.as_mut() else { return };
        let backend = Arc::clone(&process.backend);
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
        process.tasks.push(Task { future, purpose, place });
    }

    /// Starts something that the outsider does.
    pub fn begin_outside(
        &mut self,
        purpose: Purpose,
        future: Pin<Box<dyn Future<Output = Answered> + Send>>,
    ) {
        if let Some(process) = &mut self.process {
            process.tasks.push(Task { future, purpose, place: 0 });
        }
    }
}
