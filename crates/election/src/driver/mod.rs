//! One task that drives every election of a store.
//!
//! It owns the machines ([`Core`]), a timer, and every call to the backend. It passes commands of handles, answers and notices of the
//! store, and time-outs to the machines, and does what they ask for. It never drops a call: a machine gets every answer, however
//! late. User code never runs here.

mod admission;
mod calls;
mod entry;
mod history;
mod replies;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use admission::Admission;
use bellwether_backend::{Backend, Notice, Notices};
use bellwether_core::{Boot, CandidateId, Core, ElectionName, Epoch, Input};
use calls::Calls;
use entry::Entry;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{mpsc, oneshot};

use crate::Error;
use crate::hooks::HookCall;
use crate::observer::Observer;
use crate::shared::Shared;
use crate::time::{Time, Timer};

/// From this many elections on, renewals are spread in time if each is a call of its own: ten thousand at one instant wait for each
/// other for most of a second. A session renews all of its elections in one call, and spreading would make many of it.
const SPREAD_FROM: usize = 64;

/// One start of one candidate, as the driver knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StartKey(pub(crate) u64);

impl StartKey {
    pub(crate) fn next() -> StartKey {
        static LAST: AtomicU64 = AtomicU64::new(0);
        StartKey(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// Sends the driver commands for a start of a candidate.
pub(crate) type Commands = mpsc::UnboundedSender<(StartKey, DriverCommand)>;

/// Where the work, the hooks and the health check of one start report to. It does not keep the driver alive.
#[derive(Clone)]
pub(crate) struct DriverLink {
    key: StartKey,
    commands: mpsc::WeakUnboundedSender<(StartKey, DriverCommand)>,
}

impl DriverLink {
    pub(crate) fn new(key: StartKey, commands: &Commands) -> DriverLink {
        DriverLink { key, commands: commands.downgrade() }
    }

    /// False when there is no driver any more.
    pub(crate) fn tell(&self, command: DriverCommand) -> bool {
        self.commands.upgrade().is_some_and(|commands| commands.send((self.key, command)).is_ok())
    }
}

/// A candidate that wants to take part.
pub(crate) struct Entrant {
    pub(crate) core: Core,
    pub(crate) shared: Arc<Shared>,
    pub(crate) hooks: Option<mpsc::UnboundedSender<HookCall>>,
    pub(crate) started: Reply<()>,
    /// Keeps the driver's channel open for as long as this candidate takes part: work and hooks report also when every handle is
    /// gone.
    pub(crate) driver: Commands,
    /// Watches this start, if anybody wants to know.
    pub(crate) observer: Option<Box<Observer>>,
}

/// What handles, hooks and work tell the driver. Each comes from a caller that waits for the answer, or from one of the
/// few tasks of an election, so those bound how many wait here.
pub(crate) enum DriverCommand {
    Enter(Box<Entrant>),
    StepDown(Option<CandidateId>, Reply<()>),
    Stop(Reply<()>),
    Validate(Reply<bool>),
    Health(bool),
    /// The last piece of work of this leadership was dropped.
    WorkGone(Epoch),
    /// The demotion hook of this leadership has ended.
    HookEnded(Epoch),
    HookFailed(String),
    /// Work or a promotion hook panicked: nobody acts on this leadership any more.
    Panicked(Epoch),
    /// The caller does not wait any longer: cut the demotion hook off.
    Hurry,
    /// The last handle is gone.
    Abandon(Arc<Shared>),
    /// Somebody wants to know whether the driver runs.
    Ping(Reply<()>),
}

impl DriverCommand {
    /// Answers a command for a candidate that does not take part.
    fn answer_absent(self) {
        match self {
            DriverCommand::StepDown(_, reply) => drop(reply.send(Err(Error::NotStarted))),
            DriverCommand::Validate(reply) => drop(reply.send(Err(Error::NotStarted))),
            // It has stopped already.
            DriverCommand::Stop(reply) => drop(reply.send(Ok(()))),
            DriverCommand::Abandon(shared) => shared.close(),
            _ => {}
        }
    }
}

/// Starts the driver. It ends when every handle is gone and every election is quiet.
pub(crate) fn spawn(backend: Arc<dyn Backend>, time: Time) -> io::Result<Commands> {
    let timer = time.timer()?;
    let (sender, commands) = mpsc::unbounded_channel();
    let driver = Driver {
        notices: backend.signals(),
        calls: Calls::new(Arc::clone(&backend)),
        backend,
        time,
        commands,
        entries: HashMap::new(),
        names: HashMap::new(),
        timers: BTreeSet::new(),
        admission: Admission::default(),
    };
    tokio::spawn(driver.run(timer));
    Ok(sender)
}

struct Driver {
    backend: Arc<dyn Backend>,
    time: Time,
    commands: mpsc::UnboundedReceiver<(StartKey, DriverCommand)>,
    notices: Notices,
    calls: Calls,
    /// In boxes: an entry is large, and a map that grows has room for twice as many.
    entries: HashMap<StartKey, Box<Entry>>,
    names: HashMap<ElectionName, Vec<StartKey>>,
    timers: BTreeSet<(Boot, StartKey)>,
    admission: Admission,
}

impl Driver {
    async fn run(mut self, mut timer: Timer) {
        let mut open = true;
        let mut hearing = true;
        while open || !self.entries.is_empty() || !self.calls.is_empty() {
            // What is due comes first, whatever else waits.
            let mut next = self.due();
            if next <= self.time.boot() {
                self.tick();
                next = self.due();
            }
            tokio::select! {
                biased;
                // Notices before answers: a machine must know that the store was away before it judges what the store answered.
                notice = AssertUnwindSafe(self.notices.next()).catch_unwind(), if hearing => match notice {
                    Ok(Some(notice)) => self.notice(notice),
                    Ok(None) => hearing = false,
                    Err(_) => {
                        // A stream that panicked must not be polled again. Without notices, the timers still run.
                        tracing::error!("the backend's notices panicked; please report it");
                        hearing = false;
                    }
                },
                command = self.commands.recv(), if open => match command {
                    Some((key, command)) => self.command(key, command),
                    None => open = false,
                },
                Some(answer) = self.calls.next() => self.answered(answer),
                () = timer.until(next) => self.tick(),
            }
        }
    }

    fn due(&self) -> Boot {
        let timer = self.timers.first().map_or(Boot::FOREVER, |(at, _)| *at);
        timer.min(self.admission.due())
    }

    fn command(&mut self, key: StartKey, command: DriverCommand) {
        let input = match (command, self.entries.get_mut(&key)) {
            (DriverCommand::Enter(entrant), _) => return self.enter(key, *entrant),
            (DriverCommand::Ping(reply), _) => return drop(reply.send(Ok(()))),
            (command, None) => return command.answer_absent(),
            (DriverCommand::StepDown(to, reply), Some(entry)) => entry.step_down(to, reply),
            (DriverCommand::Stop(reply), Some(entry)) => Some(entry.stop(reply)),
            (DriverCommand::Validate(reply), Some(entry)) => entry.validate(reply),
            (DriverCommand::Health(healthy), Some(_)) => Some(Input::Health(healthy)),
            (DriverCommand::WorkGone(epoch), Some(entry)) => entry.work_gone(epoch),
            (DriverCommand::HookEnded(epoch), Some(entry)) => entry.hook_ended(epoch),
            (DriverCommand::HookFailed(said), Some(entry)) => return entry.report(said),
            (DriverCommand::Panicked(epoch), Some(entry)) => entry.panicked(epoch),
            (DriverCommand::Hurry, Some(entry)) => return entry.hurry(),
            (DriverCommand::Abandon(_), Some(entry)) => Some(entry.abandon()),
        };
        if let Some(input) = input {
            self.feed(key, input);
        }
    }

    fn enter(&mut self, key: StartKey, mut entrant: Entrant) {
        let each_for_itself = !self.backend.capabilities().session_bound;
        if each_for_itself && self.entries.len() >= SPREAD_FROM {
            entrant.core.jitter_renewals();
        }
        if each_for_itself {
            entrant.core.stagger_claims();
        }
        let on = entrant.shared.election.clone();
        self.guarded(|backend| backend.follow(&on));
        self.names.entry(on).or_default().push(key);
        let waits = each_for_itself && self.admission.is_crowded(self.calls.claims());
        self.entries.insert(key, Box::new(Entry::new(key, entrant, waits)));
        if waits {
            self.admission.wait(self.time.boot(), key);
        } else {
            self.feed(key, Input::Start);
        }
    }

    /// Lets those begin whose turn it is.
    fn begin_waiting(&mut self) {
        while let Some(key) = self.admission.next(self.time.boot(), self.calls.claims()) {
            // One that was told to stop meanwhile has begun already, and may be gone.
            if self.entries.get(&key).is_some_and(|entry| entry.waits) {
                self.feed(key, Input::Start);
            }
        }
    }

    fn answered(&mut self, answer: calls::StoreAnswer) {
        match answer.input {
            Some(input @ Input::Claimed(..)) => {
                self.admission.answered(self.time.boot());
                self.feed(answer.key, input);
                self.begin_waiting();
            }
            Some(input) => self.feed(answer.key, input),
            None => {
                if let Some(entry) = self.entries.get_mut(&answer.key) {
                    entry.remembered();
                }
                self.remove_if_quiet(answer.key);
            }
        }
    }

    fn notice(&mut self, notice: Notice) {
        let keys: Vec<StartKey> = match &notice.election {
            Some(on) => self.names.get(on).cloned().unwrap_or_default(),
            None => self.entries.keys().copied().collect(),
        };
        for key in keys {
            self.feed(key, Input::Signal(notice.signal.clone()));
        }
    }

    fn tick(&mut self) {
        let now = self.time.boot();
        if now >= self.admission.due() {
            self.begin_waiting();
        }
        while let Some((at, key)) = self.timers.first().copied() {
            if at > now {
                return;
            }
            self.timers.pop_first();
            self.feed(key, Input::Timeout);
        }
    }

    /// Tells one machine something, does what it wants, and sets its timer.
    fn feed(&mut self, key: StartKey, input: Input) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        if entry.waits {
            match input {
                // It observes the record itself when its turn comes.
                Input::Signal(_) => return,
                Input::Start => {}
                // A command of a handle is for a candidate that has begun.
                _ => entry.feed(Input::Start, &mut self.calls),
            }
            entry.waits = false;
        }
        entry.feed(input, &mut self.calls);
        let timer = entry.core.poll_timeout();
        if timer != entry.timer {
            if let Some(at) = entry.timer {
                self.timers.remove(&(at, key));
            }
            if let Some(at) = timer {
                self.timers.insert((at, key));
            }
            entry.timer = timer;
        } else if let Some(at) = timer {
            // The timer was removed when it fired, and the machine asks for the same instant again.
            self.timers.insert((at, key));
        }
        self.remove_if_quiet(key);
    }

    fn remove_if_quiet(&mut self, key: StartKey) {
        if !self.entries.get(&key).is_some_and(|entry| entry.is_quiet()) {
            return;
        }
        let Some(mut entry) = self.entries.remove(&key) else { return };
        if let Some(at) = entry.timer {
            self.timers.remove(&(at, key));
        }
        let on = entry.shared.election.clone();
        if let Some(keys) = self.names.get_mut(&on) {
            keys.retain(|other| *other != key);
            if keys.is_empty() {
                self.names.remove(&on);
            }
        }
        self.guarded(|backend| {
            backend.retire(&on, entry.core.who());
            backend.unfollow(&on);
        });
        entry.left();
    }

    /// A backend that panics must not end the driver, and with it every other election.
    fn guarded(&self, call: impl FnOnce(&dyn Backend)) {
        if catch_unwind(AssertUnwindSafe(|| call(&*self.backend))).is_err() {
            tracing::error!("the backend panicked; please report it");
        }
    }
}

/// Without a driver nobody renews: leaderships end, callers get an answer, and event streams close, at once.
impl Drop for Driver {
    fn drop(&mut self) {
        for entry in self.entries.values_mut() {
            entry.orphaned();
        }
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            match command {
                (_, DriverCommand::Enter(entrant)) => entrant.shared.orphaned(),
                (_, DriverCommand::Abandon(shared)) => shared.close(),
                _ => {}
            }
        }
    }
}
