//! One task that drives every election of a store.
//!
//! It owns the machines ([`Core`]), a timer, and every call to the backend. It hears commands from handles, answers and
//! news from the store, and the clock, which is handed in; it tells the machine, and does what the machine wants. No
//! call is ever dropped: a late answer is delivered however late. User code never runs here.

mod admission;
mod calls;
mod entry;
mod history;

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
use crate::hooks::Job;
use crate::shared::Shared;
use crate::time::{Time, Timer};

/// From so many elections on, renewals are spread in time, where each is a call of its own: ten thousand at the same instant wait
/// for one another for most of a second. A session renews all of its elections in one call, which is to stay one.
const SPREAD_FROM: usize = 64;

/// One start of one candidate, as the driver knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(pub(crate) u64);

impl Key {
    pub(crate) fn next() -> Key {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Key(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// A candidate that wants to take part.
pub(crate) struct Entrant {
    pub(crate) core: Core,
    pub(crate) shared: Arc<Shared>,
    pub(crate) hooks: Option<mpsc::UnboundedSender<Job>>,
    pub(crate) started: Reply<()>,
    /// The driver's own ear, open for as long as this candidate takes part: work and hooks report to it also when
    /// every handle is gone.
    pub(crate) driver: mpsc::UnboundedSender<Command>,
}

/// What handles and hooks say to the driver. Each comes from a caller that waits for the answer, or from one of the
/// few tasks of an election: what waits here is bounded by those.
pub(crate) enum Command {
    Enter(Key, Box<Entrant>),
    StepDown(Key, Option<CandidateId>, Reply<()>),
    Stop(Key, Reply<()>),
    Validate(Key, Reply<bool>),
    Health(Key, bool),
    /// The last piece of work of this leadership was dropped.
    WorkGone(Key, Epoch),
    /// The demotion hook of this leadership has ended.
    HookEnded(Key, Epoch),
    HookFailed(Key, String),
    /// Work or a promotion hook panicked: nobody acts on this leadership any more.
    Panicked(Key, Epoch),
    /// The caller's patience is over: do not wait for the hook.
    Hurry(Key),
    /// The last handle is gone.
    Abandon(Key, Arc<Shared>),
}

/// Starts the driver. It ends when every handle is gone and every election is quiet.
pub(crate) fn spawn(backend: Arc<dyn Backend>, time: Time) -> io::Result<mpsc::UnboundedSender<Command>> {
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
    commands: mpsc::UnboundedReceiver<Command>,
    notices: Notices,
    calls: Calls,
    entries: HashMap<Key, Entry>,
    names: HashMap<ElectionName, Vec<Key>>,
    timers: BTreeSet<(Boot, Key)>,
    admission: Admission,
}

impl Driver {
    async fn run(mut self, mut timer: Timer) {
        let mut open = true;
        let mut hearing = true;
        while open || !self.entries.is_empty() || !self.calls.is_empty() {
            // Whatever else is waiting, what is due is done first.
            let mut next = self.due();
            if next <= self.time.boot() {
                self.tick();
                next = self.due();
            }
            tokio::select! {
                biased;
                // News before answers: that the store was away must be known before what it answered is judged.
                notice = AssertUnwindSafe(self.notices.next()).catch_unwind(), if hearing => match notice {
                    Ok(Some(notice)) => self.notice(notice),
                    Ok(None) => hearing = false,
                    Err(_) => {
                        // Timers are the net below news; a stream that panicked must not be polled again.
                        tracing::error!("the backend's news panicked; please report it");
                        hearing = false;
                    }
                },
                command = self.commands.recv(), if open => match command {
                    Some(command) => self.command(command),
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

    fn command(&mut self, command: Command) {
        match command {
            Command::Enter(key, entrant) => self.enter(key, *entrant),
            Command::StepDown(key, to, reply) => {
                self.with(key, reply, |entry, reply| entry.step_down(to, reply))
            }
            Command::Stop(key, reply) => match self.entries.get_mut(&key) {
                Some(entry) => {
                    let input = entry.stop(reply);
                    self.feed(key, input);
                }
                // It has stopped already.
                None => drop(reply.send(Ok(()))),
            },
            Command::Validate(key, reply) => self.with(key, reply, |entry, reply| entry.validate(reply)),
            Command::Health(key, healthy) => self.feed(key, Input::Health(healthy)),
            Command::WorkGone(key, epoch) => self.poke(key, |entry| entry.work_gone(epoch)),
            Command::HookEnded(key, epoch) => self.poke(key, |entry| entry.hook_ended(epoch)),
            Command::HookFailed(key, said) => {
                if let Some(entry) = self.entries.get_mut(&key) {
                    entry.report(said);
                }
            }
            Command::Panicked(key, epoch) => self.poke(key, |entry| entry.panicked(epoch)),
            Command::Hurry(key) => {
                if let Some(entry) = self.entries.get_mut(&key) {
                    entry.hurry();
                }
            }
            Command::Abandon(key, shared) => match self.entries.get_mut(&key) {
                Some(entry) => {
                    let input = entry.abandon();
                    self.feed(key, input);
                }
                None => shared.close(),
            },
        }
    }

    fn enter(&mut self, key: Key, mut entrant: Entrant) {
        let each_for_itself = !self.backend.capabilities().session_bound;
        if each_for_itself && self.entries.len() >= SPREAD_FROM {
            entrant.core.jitter_renewals();
        }
        let on = entrant.shared.election.clone();
        self.guarded(|backend| backend.follow(&on));
        self.names.entry(on).or_default().push(key);
        let waits = each_for_itself && self.admission.is_crowded(self.calls.claims());
        self.entries.insert(key, Entry::new(key, entrant, waits));
        if waits {
            self.admission.wait(self.time.boot(), key);
        } else {
            self.feed(key, Input::Start);
        }
    }

    /// Lets those begin whose turn it is.
    fn begin_waiting(&mut self) {
        while let Some(key) = self.admission.next(self.time.boot(), self.calls.claims()) {
            // Who was told to stop meanwhile has begun, and may be gone.
            if self.entries.get(&key).is_some_and(|entry| entry.waits) {
                self.feed(key, Input::Start);
            }
        }
    }

    fn with<T>(
        &mut self,
        key: Key,
        reply: Reply<T>,
        ask: impl FnOnce(&mut Entry, Reply<T>) -> Option<Input>,
    ) {
        match self.entries.get_mut(&key) {
            Some(entry) => {
                let input = ask(entry, reply);
                if let Some(input) = input {
                    self.feed(key, input);
                }
            }
            None => drop(reply.send(Err(Error::NotStarted))),
        }
    }

    fn poke(&mut self, key: Key, ask: impl FnOnce(&mut Entry) -> Option<Input>) {
        if let Some(input) = self.entries.get_mut(&key).and_then(ask) {
            self.feed(key, input);
        }
    }

    fn answered(&mut self, answer: calls::Answer) {
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
        let keys: Vec<Key> = match &notice.election {
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
    fn feed(&mut self, key: Key, input: Input) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        if entry.waits {
            match input {
                // It looks for itself when its turn comes.
                Input::Signal(_) => return,
                Input::Start => {}
                // Whatever a handle wants of it, it wants of one that has begun.
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
            // It was taken out when it fired, and the machine asks for the same instant again.
            self.timers.insert((at, key));
        }
        self.remove_if_quiet(key);
    }

    fn remove_if_quiet(&mut self, key: Key) {
        if !self.entries.get(&key).is_some_and(Entry::is_quiet) {
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

    /// A backend that panics must not take the driver, and with it every other election, along.
    fn guarded(&self, call: impl FnOnce(&dyn Backend)) {
        if catch_unwind(AssertUnwindSafe(|| call(&*self.backend))).is_err() {
            tracing::error!("the backend panicked; please report it");
        }
    }
}

/// Without a driver nobody renews: whoever still believes, waits or listens is told at once.
impl Drop for Driver {
    fn drop(&mut self) {
        for entry in self.entries.values_mut() {
            entry.orphaned();
        }
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Enter(_, entrant) => entrant.shared.orphaned(),
                Command::Abandon(_, shared) => shared.close(),
                _ => {}
            }
        }
    }
}
