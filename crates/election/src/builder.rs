//! Making an election.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{
    BadName, Breaker, CandidateId, ElectionName, Exponential, Options, RetryContext, RetryStrategy, Rng,
    Settings,
};

use crate::callbacks::{Answer, Callbacks, On};
use crate::election::Recipe;
use crate::health::{Health, HealthCheck};
use crate::hooks::AnyHooks;
use crate::subscription::{EventQueue, Events};
use crate::{Election, Error, Event, Hooks, Store};

type OptionsChange = Box<dyn FnOnce(&mut Options) + Send>;

/// How a candidate competes. Everything has a default but the backend and the id.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), bellwether_election::Error> {
/// # let backend = bellwether_backend::MemoryStore::default().connect(std::sync::Arc::new(bellwether_deadman::SystemClock));
/// use std::time::Duration;
/// use bellwether_election::Election;
///
/// let election = Election::builder("reports")
///     .backend(backend)
///     .id("host-1")
///     .ttl(Duration::from_secs(5))
///     .on_acquired(|event| println!("leading under epoch {:?}", event.epoch))
///     .start()
///     .await?;
/// election.stop().await?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct ElectionBuilder {
    name: Result<ElectionName, BadName>,
    id: Result<CandidateId, BadName>,
    store: Option<Store>,
    /// What is to be changed in the store's default options, in this order.
    changes: Vec<OptionsChange>,
    hooks: Option<Arc<dyn AnyHooks>>,
    health: Option<Health>,
    callbacks: Callbacks,
    subscribers: Vec<Arc<EventQueue>>,
    stop_when: Option<crate::election::StopWhen>,
    #[cfg(feature = "metrics")]
    metrics: Option<crate::Metrics>,
}

impl ElectionBuilder {
    pub(crate) fn new(name: Result<ElectionName, BadName>) -> ElectionBuilder {
        ElectionBuilder {
            name,
            id: CandidateId::new(""),
            store: None,
            changes: Vec::new(),
            hooks: None,
            health: None,
            callbacks: Callbacks::default(),
            subscribers: Vec::new(),
            stop_when: None,
            #[cfg(feature = "metrics")]
            metrics: None,
        }
    }

    /// The store: a backend, or a clone of a [`Store`] to share a connection with other elections.
    pub fn backend(mut self, store: impl Into<Store>) -> Self {
        self.store = Some(store.into());
        self
    }

    /// This candidate's id: stable and readable, like a pod's or a host's name.
    pub fn id(mut self, id: impl TryInto<CandidateId, Error: Into<BadName>>) -> Self {
        self.id = id.try_into().map_err(Into::into);
        self
    }

    /// All settings at once, in place of the store's defaults and of what was set before.
    pub fn options(self, options: Options) -> Self {
        self.set(move |all| *all = options)
    }

    /// How long a grant lasts without renewal. Intervals that are not set follow it in proportion.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.set(move |options| options.timing.ttl = ttl)
    }

    /// From one renewal to the next.
    pub fn renew_interval(self, every: Duration) -> Self {
        self.set(move |options| options.timing.renew = Some(every))
    }

    /// How long to wait before trying again where no change is announced.
    pub fn retry_interval(self, every: Duration) -> Self {
        self.set(move |options| options.timing.retry = Some(every))
    }

    /// How long to wait after an error.
    pub fn retry_strategy(self, strategy: impl RetryStrategy) -> Self {
        self.set(move |options| options.strategy = Arc::new(strategy))
    }

    /// After many errors in a row, a longer pause.
    pub fn breaker(self, breaker: Breaker) -> Self {
        self.set(move |options| options.breaker = Some(breaker))
    }

    /// When leadership becomes uncertain, tries for `grace` to regain it before reporting it lost.
    pub fn reconnect_grace(self, grace: Duration) -> Self {
        self.set(move |options| options.reconnect_grace = Some(grace))
    }

    /// After stepping down, stays out of the election for `cooldown`, also across a restart.
    pub fn cooldown(self, cooldown: Duration) -> Self {
        self.set(move |options| options.cooldown = Some(cooldown))
    }

    /// Whether to compete again after a leadership has ended; true by default.
    pub fn auto_reacquire(self, again: bool) -> Self {
        self.set(move |options| options.auto_reacquire = again)
    }

    /// Whether stopping releases the leadership; true by default. Otherwise the record expires by itself, so that nobody takes over
    /// while this process restarts quickly.
    pub fn release_on_stop(self, release: bool) -> Self {
        self.set(move |options| options.release_on_stop = release)
    }

    /// How long the record is still renewed while work stops on a planned end: stopping, stepping down, a request, a failed health
    /// check. For work that holds a [`WorkGuard`](crate::WorkGuard). Zero by default: such work then has until the deadline.
    pub fn stop_timeout(self, span: Duration) -> Self {
        self.set(move |options| options.stop_timeout = span)
    }

    /// While leading, reads the record back this often, and steps down if it is not ours. Renewals prove as much; this is
    /// for those who want to know between two of them.
    pub fn validation_interval(self, every: Duration) -> Self {
        self.set(move |options| options.validation = Some(every))
    }

    /// While leading, tolerates a silent connection for `grace`, then steps down. It never prolongs a leadership: the deadline
    /// still applies.
    pub fn disconnect_grace(self, grace: Duration) -> Self {
        self.set(move |options| options.disconnect_grace = Some(grace))
    }

    /// Steps down after this many failed renewals in a row, instead of at the deadline.
    pub fn failed_renewals(self, most: u32) -> Self {
        self.set(move |options| options.failed_renewals = Some(most))
    }

    /// This candidate's priority, 0 by default. A candidate that [preempts](Self::preempt) asks a leader of smaller priority to hand over.
    pub fn priority(self, priority: i32) -> Self {
        self.set(move |options| options.priority = priority)
    }

    /// Whether to ask a leader of smaller priority to hand over; it does not by default.
    pub fn preempt(self, preempt: bool) -> Self {
        self.set(move |options| options.preempt = preempt)
    }

    /// Written into the record for readers.
    pub fn metadata(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let (key, value) = (key.into(), value.into());
        self.set(move |options| {
            options.metadata.insert(key, value);
        })
    }

    /// Only a healthy candidate competes, and an unhealthy leader steps down. A check that returns false, panics or takes too long
    /// has failed.
    pub fn health<C, F>(self, when: HealthCheck, check: C) -> Self
    where
        C: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = bool> + Send + 'static,
    {
        let mut builder = self.set(move |options| options.health_failures = Some(when.failures_max()));
        builder.health = Some(Health { when, check: Arc::new(move || Box::pin(check())) });
        builder
    }

    /// Code that runs when leadership comes and goes.
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.hooks = Some(Arc::new(hooks));
        self
    }

    /// Calls `callback` at every such event, after those registered before it.
    pub fn on<A: Answer>(self, on: On, callback: impl Fn(Event) -> A + Send + Sync + 'static) -> Self {
        self.callbacks.add(on, callback);
        self
    }

    /// Like [`on`](Self::on), with an async callback; the next event waits for it, a renewal never does.
    pub fn on_async<A, F>(self, on: On, callback: impl Fn(Event) -> F + Send + Sync + 'static) -> Self
    where
        A: Answer,
        F: Future<Output = A> + Send + 'static,
    {
        self.callbacks.add_async(on, callback);
        self
    }

    /// Calls `callback` when a leadership begins.
    pub fn on_acquired<A: Answer>(self, callback: impl Fn(Event) -> A + Send + Sync + 'static) -> Self {
        self.on(On::Acquired, callback)
    }

    /// Calls `callback` when the leader has given its leadership up.
    pub fn on_released<A: Answer>(self, callback: impl Fn(Event) -> A + Send + Sync + 'static) -> Self {
        self.on(On::Released, callback)
    }

    /// Calls `callback` when a leadership was lost.
    pub fn on_lost<A: Answer>(self, callback: impl Fn(Event) -> A + Send + Sync + 'static) -> Self {
        self.on(On::Lost, callback)
    }

    /// Calls `callback` when the store denied a claim.
    pub fn on_acquire_failed<A: Answer>(self, callback: impl Fn(Event) -> A + Send + Sync + 'static) -> Self {
        self.on(On::AcquireFailed, callback)
    }

    /// Calls `callback` when the candidate's state changed.
    pub fn on_state_change<A: Answer>(self, callback: impl Fn(Event) -> A + Send + Sync + 'static) -> Self {
        self.on(On::StateChange, callback)
    }

    /// Calls `callback` when something went wrong, also in another callback.
    pub fn on_error<A: Answer>(self, callback: impl Fn(Event) -> A + Send + Sync + 'static) -> Self {
        self.on(On::Error, callback)
    }

    /// Calls `callback` when the candidate has stopped.
    pub fn on_stopped<A: Answer>(self, callback: impl Fn(Event) -> A + Send + Sync + 'static) -> Self {
        self.on(On::Stopped, callback)
    }

    /// Subscribes to all events, from the first on. [`Election::events`] gives those from the moment of the call.
    pub fn subscribe(&mut self) -> Events {
        let (events, queue) = Events::new();
        self.subscribers.push(queue);
        events
    }

    /// Stops the election, with a release, when this future completes: a cancellation token, a signal. This works at any time, also
    /// during back-off and while connecting, and in whichever runtime the election was started last. A future that belongs to
    /// one runtime, such as a timer, ends with that runtime.
    pub fn stop_when(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.stop_when = Some(Box::pin(signal));
        self
    }

    /// Counts what happens in this election, and how long calls to the store take, in these metrics.
    #[cfg(feature = "metrics")]
    pub fn metrics(mut self, metrics: &crate::Metrics) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }

    /// Builds the election and starts to compete. A store that cannot be reached is retried in the background.
    ///
    /// # Errors
    /// As [`build`](Self::build), and what a retry cannot fix.
    pub async fn start(self) -> Result<Election, Error> {
        let election = self.build()?;
        election.start().await?;
        Ok(election)
    }

    fn set(mut self, change: impl FnOnce(&mut Options) + Send + 'static) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// The election, not started yet: for code that may have to [`stop`](Election::stop) it before
    /// [`start`](Election::start) has returned.
    ///
    /// # Errors
    /// When a setting is missing or refused.
    pub fn build(self) -> Result<Election, Error> {
        let mut options =
            self.store.as_ref().map_or_else(Options::default, |store| store.default_options().clone());
        self.changes.into_iter().for_each(|change| change(&mut options));
        options.strategy = Arc::new(Careful(options.strategy));
        if let Some(store) = &self.store {
            options.timing.ttl_unit = store.backend().capabilities().ttl_unit;
        }
        let settings = Settings::new(options)?;
        let (name, id) = (self.name?, self.id?);
        let store = self.store.ok_or(Error::NoBackend)?;
        let recipe = Recipe {
            settings,
            id,
            hooks: self.hooks,
            health: self.health,
            #[cfg(feature = "metrics")]
            metrics: self.metrics,
        };
        let election = Election::new(name, store, recipe, self.callbacks, self.subscribers);
        if let Some(signal) = self.stop_when {
            election.set_stop_signal(signal);
        }
        Ok(election)
    }
}

/// A strategy of the user's that panics must not take the driver, and with it every other election, along: then the
/// default decides.
#[derive(Debug)]
struct Careful(Arc<dyn RetryStrategy>);

impl RetryStrategy for Careful {
    fn next_delay(&self, context: &RetryContext<'_>, rng: &mut Rng) -> Option<Duration> {
        catch_unwind(AssertUnwindSafe(|| self.0.next_delay(context, rng))).unwrap_or_else(|_| {
            tracing::error!("the retry strategy panicked; the default is used instead");
            Exponential::default().next_delay(context, rng)
        })
    }

    fn longest(&self) -> Duration {
        self.0.longest()
    }
}
