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
use crate::subscription::{Events, Queue};
use crate::{Election, Error, Hooks, Store};

type Change = Box<dyn FnOnce(&mut Options) + Send>;

/// How a candidate takes part. Everything has a default but the backend and the id.
#[must_use]
pub struct ElectionBuilder {
    name: Result<ElectionName, BadName>,
    id: Result<CandidateId, BadName>,
    store: Option<Store>,
    /// What is to be changed in the store's default options, in this order.
    changes: Vec<Change>,
    hooks: Option<Arc<dyn AnyHooks>>,
    health: Option<Health>,
    callbacks: Callbacks,
    subscribers: Vec<Arc<Queue>>,
    stop_when: Option<crate::election::StopWhen>,
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

    /// After a loss in doubt, try for so long to get back before calling it lost.
    pub fn reconnect_grace(self, grace: Duration) -> Self {
        self.set(move |options| options.reconnect_grace = Some(grace))
    }

    /// After stepping down, stay away for so long, also over a restart.
    pub fn cooldown(self, cooldown: Duration) -> Self {
        self.set(move |options| options.cooldown = Some(cooldown))
    }

    /// Whether to stand again after a leadership ended; it does by default.
    pub fn auto_reacquire(self, again: bool) -> Self {
        self.set(move |options| options.auto_reacquire = again)
    }

    /// Whether stopping releases; it does by default. Without it the record runs out by itself, so that nobody takes over
    /// while this process is restarted quickly.
    pub fn release_on_stop(self, release: bool) -> Self {
        self.set(move |options| options.release_on_stop = release)
    }

    /// How long the record is still renewed while work stops in a planned end: stopping, stepping down, a request, a failed health
    /// check. For work that holds the leadership by a guard; none by default, and then it has what is left until the deadline.
    pub fn stop_timeout(self, span: Duration) -> Self {
        self.set(move |options| options.stop_timeout = span)
    }

    /// How often to read the record back while leading, and to let go at once if it is not ours. Renewals prove as
    /// much; this is for those who want to know sooner.
    pub fn validation_interval(self, every: Duration) -> Self {
        self.set(move |options| options.validation = Some(every))
    }

    /// For how long silence of the connection is borne; the deadline ends the leadership all the same.
    pub fn disconnect_grace(self, grace: Duration) -> Self {
        self.set(move |options| options.disconnect_grace = Some(grace))
    }

    /// Failed renewals in a row that end the leadership before the deadline does.
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
    pub fn on<A: Answer>(self, on: On, callback: impl Fn(crate::Event) -> A + Send + Sync + 'static) -> Self {
        self.callbacks.add(on, callback);
        self
    }

    /// Like [`on`](Self::on), with an async callback; the next event waits for it, a renewal never does.
    pub fn on_async<A, F>(self, on: On, callback: impl Fn(crate::Event) -> F + Send + Sync + 'static) -> Self
    where
        A: Answer,
        F: Future<Output = A> + Send + 'static,
    {
        self.callbacks.add_async(on, callback);
        self
    }

    /// Called when leading.
    pub fn on_acquired<A: Answer>(
        self,
        callback: impl Fn(crate::Event) -> A + Send + Sync + 'static,
    ) -> Self {
        self.on(On::Acquired, callback)
    }

    /// Called when let go by choice.
    pub fn on_released<A: Answer>(
        self,
        callback: impl Fn(crate::Event) -> A + Send + Sync + 'static,
    ) -> Self {
        self.on(On::Released, callback)
    }

    /// Called when lost.
    pub fn on_lost<A: Answer>(self, callback: impl Fn(crate::Event) -> A + Send + Sync + 'static) -> Self {
        self.on(On::Lost, callback)
    }

    /// Called when an attempt was denied.
    pub fn on_acquire_failed<A: Answer>(
        self,
        callback: impl Fn(crate::Event) -> A + Send + Sync + 'static,
    ) -> Self {
        self.on(On::AcquireFailed, callback)
    }

    /// Called when the state changed.
    pub fn on_state_change<A: Answer>(
        self,
        callback: impl Fn(crate::Event) -> A + Send + Sync + 'static,
    ) -> Self {
        self.on(On::StateChange, callback)
    }

    /// Called when something went wrong, also in another callback.
    pub fn on_error<A: Answer>(self, callback: impl Fn(crate::Event) -> A + Send + Sync + 'static) -> Self {
        self.on(On::Error, callback)
    }

    /// Called when not taking part any more.
    pub fn on_stopped<A: Answer>(self, callback: impl Fn(crate::Event) -> A + Send + Sync + 'static) -> Self {
        self.on(On::Stopped, callback)
    }

    /// Events from the very first on; [`Election::events`] gives those from now on.
    pub fn subscribe(&mut self) -> Events {
        let (events, queue) = Events::new();
        self.subscribers.push(queue);
        events
    }

    /// Stops the election, with a release, when this future is ready: a cancellation token, a signal. It is heeded
    /// at any time, also in back-off and while connecting, and in whichever runtime the election was started last. A future
    /// that belongs to one runtime, such as a timer, ends with it.
    pub fn stop_when(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.stop_when = Some(Box::pin(signal));
        self
    }

    /// Takes part. Fails only on what trying again cannot mend; a store that is out of reach is tried in the
    /// background.
    pub async fn start(self) -> Result<Election, Error> {
        let election = self.build()?;
        election.start().await?;
        Ok(election)
    }

    fn set(mut self, change: impl FnOnce(&mut Options) + Send + 'static) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// The election, not taking part yet: for whoever may have to [`stop`](Election::stop) it before
    /// [`start`](Election::start) has returned.
    ///
    /// # Errors
    /// When a setting is missing or refused.
    pub fn build(self) -> Result<Election, Error> {
        let mut options =
            self.store.as_ref().map_or_else(Options::default, |store| store.default_options().clone());
        self.changes.into_iter().for_each(|change| change(&mut options));
        options.strategy = Arc::new(Careful(options.strategy));
        let settings = Settings::new(options)?;
        let (name, id) = (self.name?, self.id?);
        let store = self.store.ok_or(Error::NoBackend)?;
        let recipe = Recipe { settings, id, hooks: self.hooks, health: self.health };
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
