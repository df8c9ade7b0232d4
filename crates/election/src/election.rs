//! The handle that people hold.

mod measuring;
mod releasing;
mod stop_signal;
mod validation;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bellwether_core::{
    BadName, Candidate, CandidateId, Core, ElectionName, Epoch, ErrorKind, Incarnation, Settings, StoreError,
};
use bellwether_deadman::random_bits;
use tokio::sync::{mpsc, oneshot};

use crate::callbacks::{Answer, Callbacks, On};
use crate::driver::{DriverCommand, DriverLink, Entrant, Reply, StartKey};
use crate::event::What;
use crate::health::{self, Health};
use crate::hooks::AnyHooks;
use crate::shared::Shared;
use crate::subscription::{EventQueue, Events};
use crate::{
    ElectionBuilder, Error, Event, Followers, Leadership, LeaseView, Over, Role, Status, Store, callbacks,
    hooks,
};

use stop_signal::StopSignal;
pub(crate) use stop_signal::StopWhen;

/// How to take part, kept for starting again.
pub(crate) struct Recipe {
    pub(crate) settings: Settings,
    pub(crate) id: CandidateId,
    pub(crate) hooks: Option<Arc<dyn AnyHooks>>,
    pub(crate) health: Option<Health>,
    #[cfg(feature = "metrics")]
    pub(crate) metrics: Option<crate::Metrics>,
}

/// A candidate in an election.
///
/// Cheap to clone and safe to share. When the last clone is dropped, the candidate releases its leadership and leaves the
/// election.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), bellwether_election::Error> {
/// # let backend = bellwether_backend::MemoryStore::default().connect(std::sync::Arc::new(bellwether_deadman::SystemClock));
/// use bellwether_election::Election;
///
/// let election = Election::builder("reports").backend(backend).id("host-1").start().await?;
/// let done = election.lead(|leadership| async move { leadership.epoch() }).await?;
/// println!("worked under epoch {done}");
/// election.stop().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Election(Arc<Handle>);

struct Handle {
    store: Store,
    shared: Arc<Shared>,
    recipe: Recipe,
    /// The present start of this candidate with the driver.
    key: AtomicU64,
    /// Held while starting, so that two starts at once are one.
    starting: tokio::sync::Mutex<()>,
    stop_signal: StopSignal,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.tell(DriverCommand::Abandon(Arc::clone(&self.shared))).is_err() {
            self.shared.close();
        }
    }
}

impl Handle {
    /// Tells the driver something about the present start.
    fn tell(&self, command: DriverCommand) -> Result<(), Error> {
        let driver = self.store.running_driver().ok_or(Error::NotStarted)?;
        let key = StartKey(self.key.load(Ordering::Acquire));
        driver.send((key, command)).map_err(|_| Error::DriverGone)
    }
}

impl Election {
    /// Describes how to compete in the election of this name.
    ///
    /// The name and the id are checked when the election is [built](ElectionBuilder::build) or started.
    pub fn builder(name: impl TryInto<ElectionName, Error: Into<BadName>>) -> ElectionBuilder {
        ElectionBuilder::new(name.try_into().map_err(Into::into))
    }

    pub(crate) fn new(
        name: ElectionName,
        store: Store,
        recipe: Recipe,
        registered: Callbacks,
        subscribers: Vec<Arc<EventQueue>>,
    ) -> Election {
        let who = Candidate { id: recipe.id.clone(), incarnation: Incarnation::from_bits(random_bits()) };
        let shared = Arc::new(Shared::new(name, who, store.time().clone(), registered));
        subscribers.into_iter().for_each(|queue| shared.subscribe(queue));
        Election(Arc::new(Handle {
            store,
            shared,
            recipe,
            key: AtomicU64::new(0),
            starting: tokio::sync::Mutex::new(()),
            stop_signal: StopSignal::default(),
        }))
    }

    /// Starts to compete, each time as a new incarnation: for the first time, after [`stop`](Self::stop), or in another runtime after the first
    /// one has ended. Does nothing if this candidate competes already.
    ///
    /// # Errors
    /// What a retry cannot fix, such as a store whose connection ended with its runtime. [`Error::StillWorking`] when the work of
    /// the previous start has not ended a ttl after the stop time-out; an error of the store when it has not answered a call of that
    /// start by then.
    pub async fn start(&self) -> Result<(), Error> {
        self.unless_signalled(self.begin()).await
    }

    async fn begin(&self) -> Result<(), Error> {
        let _one_at_a_time = self.0.starting.lock().await;
        if self.takes_part().await? {
            return Ok(());
        }
        let driver = self.0.store.driver()?;
        let recipe = &self.0.recipe;
        let who = Candidate { id: recipe.id.clone(), incarnation: Incarnation::from_bits(random_bits()) };
        let key = StartKey::next();
        self.0.key.store(key.0, Ordering::Release);
        let link = DriverLink::new(key, &driver);
        let hooks = recipe.hooks.clone().map(|hooks| {
            let (calls, receiver) = mpsc::unbounded_channel();
            tokio::spawn(hooks::run(hooks, receiver, self.events(), link.clone()));
            calls
        });
        self.start_callbacks();
        let seed = random_bits() as u64;
        let (reply, started) = oneshot::channel();
        let entrant = Entrant {
            core: Core::new(recipe.settings.clone(), who, seed),
            shared: Arc::clone(&self.0.shared),
            hooks,
            started: reply,
            driver: driver.clone(),
            observer: self.observer(),
        };
        // Before the driver hears of it: what is started here, and whoever stops it now, goes by this.
        self.0.shared.snapshot.send_modify(|snapshot| snapshot.running = true);
        if driver.send((key, DriverCommand::Enter(Box::new(entrant)))).is_err() {
            self.0.shared.orphaned();
            return Err(Error::DriverGone);
        }
        self.await_stop_signal();
        if let Some(health) = recipe.health.clone() {
            tokio::spawn(health::watch(health, link, Arc::downgrade(&self.0.shared)));
        }
        started.await.map_err(|_| Error::DriverGone)?
    }

    /// Whether it takes part; waits until a start that was told to stop has ended.
    async fn takes_part(&self) -> Result<bool, Error> {
        let (time, settings) = (&self.0.shared.time, &self.0.recipe.settings);
        let timing = settings.timing();
        // By then its work has had all its time and its release is over, one way or the other. What is left is work that does not
        // end, or a call that gets no answer.
        let patience = time.boot() + settings.options().stop_timeout + timing.ttl() + timing.call_timeout();
        let mut timer = time.timer().ok();
        let mut snapshot = self.0.shared.snapshot.subscribe();
        loop {
            let (running, stopping, working) = {
                let now = snapshot.borrow_and_update();
                (now.running, now.stopping, now.work_ending)
            };
            if !running || !stopping {
                return Ok(running);
            }
            if time.boot() >= patience && working {
                return Err(Error::StillWorking);
            }
            if time.boot() >= patience {
                let sentence =
                    "calls of the previous start have had no answer: start again once the store answers";
                let backend = self.0.store.backend().name();
                return Err(StoreError::new(ErrorKind::Unavailable, backend, sentence).into());
            }
            tokio::select! {
                changed = snapshot.changed() => changed.map_err(|_| Error::DriverGone)?,
                () = time.until(timer.as_mut(), patience) => {}
            }
        }
    }

    /// Whether this candidate leads, now. One clock read and one atomic load: call it as often as you like.
    #[inline]
    pub fn is_leader(&self) -> bool {
        self.0.shared.is_leader()
    }

    /// The present leadership, if there is one.
    pub fn leadership(&self) -> Option<Leadership> {
        self.0.shared.snapshot.borrow().leadership.clone().filter(Leadership::is_valid)
    }

    /// Waits until this candidate leads. Dropping the future stops waiting, and nothing else.
    pub async fn wait_for_leadership(&self) -> Result<Leadership, Error> {
        let mut snapshot = self.0.shared.snapshot.subscribe();
        loop {
            {
                let now = snapshot.borrow_and_update();
                if let Some(leadership) = now.leadership.as_ref().filter(|leadership| leadership.is_valid()) {
                    return Ok(leadership.clone());
                }
                if !now.running {
                    let ended =
                        if self.0.store.is_orphaned() { Error::DriverGone } else { Error::NotStarted };
                    return Err(now.failure.clone().map_or(ended, Error::Backend));
                }
            }
            snapshot.changed().await.map_err(|_| Error::DriverGone)?;
        }
    }

    /// Like [`wait_for_leadership`](Self::wait_for_leadership); returns [`Error::TimedOut`] after `limit`.
    pub async fn wait_for_leadership_within(&self, limit: Duration) -> Result<Leadership, Error> {
        tokio::time::timeout(limit, self.wait_for_leadership()).await.map_err(|_| Error::TimedOut)?
    }

    /// Leads, again and again, until the work is done once: waits for leadership, runs the work, drops it the moment
    /// the leadership is over, waits again. Returns what the work returned; the leadership is kept, so
    /// [`stop`](Self::stop) when there is nothing more to do.
    pub async fn lead<F, W>(&self, mut work: W) -> Result<F::Output, Error>
    where
        W: FnMut(Leadership) -> F,
        F: Future,
    {
        loop {
            let leadership = self.wait_for_leadership().await?;
            // Called inside, so that a panic before the first await ends the leadership as well.
            match leadership.run(async { work(leadership.clone()).await }).await {
                Ok(output) => return Ok(output),
                Err(Over::Released | Over::Lost(_) | Over::Expired) => {}
            }
        }
    }

    /// Adds an event to the stream of this election: for code that runs the leader's work and reports on it.
    ///
    /// `epoch` is the leadership that it is about, which may be over by now.
    pub fn report(&self, epoch: Epoch, what: What) {
        let status = self.status();
        let event = Event {
            time: self.0.shared.time.wall(),
            boot: self.0.shared.time.boot(),
            election: self.name().clone(),
            candidate: self.candidate(),
            epoch: Some(epoch),
            attempt: status.attempts,
            what,
        };
        crate::log::line(&event, None);
        self.0.shared.publish(&event);
    }

    /// The time, as this election tells it.
    pub(crate) fn boot(&self) -> bellwether_core::Boot {
        self.0.shared.time.boot()
    }

    /// Events from now on, in order.
    pub fn events(&self) -> Events {
        let (events, queue) = Events::new();
        self.0.shared.subscribe(queue);
        events
    }

    /// Registers a callback while running; see [`ElectionBuilder::on`].
    pub fn on<A: Answer>(&self, on: On, callback: impl Fn(Event) -> A + Send + Sync + 'static) {
        self.0.shared.callbacks.add(on, callback);
        self.start_callbacks();
    }

    /// Registers an async callback while running; see [`ElectionBuilder::on_async`].
    pub fn on_async<A, F>(&self, on: On, callback: impl Fn(Event) -> F + Send + Sync + 'static)
    where
        A: Answer,
        F: Future<Output = A> + Send + 'static,
    {
        self.0.shared.callbacks.add_async(on, callback);
        self.start_callbacks();
    }

    /// The election's name.
    pub fn name(&self) -> &ElectionName {
        &self.0.shared.election
    }

    /// This candidate's id.
    pub fn id(&self) -> &CandidateId {
        &self.0.recipe.id
    }

    /// This candidate: its id, and this start of it.
    pub fn candidate(&self) -> Candidate {
        Candidate { id: self.id().clone(), incarnation: self.incarnation() }
    }

    /// This start of the candidate.
    pub fn incarnation(&self) -> Incarnation {
        self.0.shared.snapshot.borrow().status.incarnation
    }

    /// The leader, as far as the store shows.
    pub fn leader(&self) -> Option<CandidateId> {
        self.0.shared.snapshot.borrow().status.leader.clone()
    }

    /// Leading, standing by, or neither.
    pub fn role(&self) -> Role {
        if self.is_leader() {
            Role::Primary
        } else if self.0.shared.snapshot.borrow().running {
            Role::Passive
        } else {
            Role::Unknown
        }
    }

    /// The highest epoch seen in this election; `None` before anything was seen. One's own is
    /// [`Leadership::epoch`].
    pub fn epoch(&self) -> Option<Epoch> {
        Some(self.0.shared.snapshot.borrow().status.highest_epoch).filter(|epoch| *epoch > Epoch::ZERO)
    }

    /// How the election stands for this candidate.
    pub fn status(&self) -> Status {
        let status = self.0.shared.snapshot.borrow().status.clone();
        Status { unwatched: self.0.store.backend().unwatched(&status.election), ..status }
    }

    /// Waits until `wanted` returns true for the status. It sees only the latest status, so it can miss one that lasts a moment;
    /// [`events`](Self::events) misses nothing.
    pub async fn wait_until(&self, mut wanted: impl FnMut(&Status) -> bool) -> Result<Status, Error> {
        let mut snapshot = self.0.shared.snapshot.subscribe();
        let now = snapshot.wait_for(|now| wanted(&now.status)).await.map_err(|_| Error::DriverGone)?;
        Ok(now.status.clone())
    }

    /// The settings it runs with.
    pub fn settings(&self) -> &Settings {
        &self.0.recipe.settings
    }

    /// Reads the record, as an observer would.
    pub async fn observe(&self) -> Result<LeaseView, Error> {
        self.0.store.observe(self.name()).await
    }

    /// The candidates that wait for this election, those of other processes included; `None` where the store does not know.
    pub async fn followers(&self) -> Result<Option<Followers>, Error> {
        self.0.store.followers(self.name()).await
    }

    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> DriverCommand) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.0.tell(command(reply))?;
        answer.await.map_err(|_| Error::DriverGone)?
    }

    fn start_callbacks(&self) {
        let registered = Arc::clone(&self.0.shared.callbacks);
        if let Some((events, queue)) = registered.new_feed() {
            self.0.shared.subscribe(queue);
            tokio::spawn(callbacks::run(registered, events));
        }
    }
}
