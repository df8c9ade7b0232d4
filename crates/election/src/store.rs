//! A store with elections on it.

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::{Backend, Followers, Past, lock};
use bellwether_core::{
    Ask, CandidateId, ElectionName, Epoch, ErrorKind, Options, Outcome, Pause, Proof, Request, StoreError,
};
use tokio::sync::oneshot;

use crate::driver::{self, Commands, DriverCommand, StartKey};
use crate::time::{Time, Timekeeper};
use crate::{Error, LeaseView};

/// A backend and the task that drives all elections on it. Cloning shares both.
///
/// Give clones of one `Store` to several builders, and any number of elections run on one connection and one task.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), bellwether_election::Error> {
/// # let backend = bellwether_backend::MemoryStore::default().connect(std::sync::Arc::new(bellwether_deadman::SystemClock));
/// use bellwether_election::{Election, Store};
///
/// let store = Store::from(backend);
/// let reports = Election::builder("reports").backend(store.clone()).id("host-1").start().await?;
/// let cleanup = Election::builder("cleanup").backend(store.clone()).id("host-1").start().await?;
/// println!("{:?} leads", store.observe(reports.name()).await?.holder());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    default_options: Arc<Options>,
}

struct Inner {
    backend: Arc<dyn Backend>,
    time: Time,
    driver: Mutex<Option<Commands>>,
}

impl<B: Backend> From<B> for Store {
    fn from(backend: B) -> Store {
        Store::new(Arc::new(backend))
    }
}

impl Store {
    /// Elections on this backend.
    pub fn new(backend: Arc<dyn Backend>) -> Store {
        Store::build(backend, Time::System)
    }

    /// Elections on this backend, by a time of the caller's own: for simulations. The backend goes by its own clock; give it the same.
    pub fn with_time(backend: Arc<dyn Backend>, time: Arc<dyn Timekeeper>) -> Store {
        Store::build(backend, Time::Given(time))
    }

    fn build(backend: Arc<dyn Backend>, time: Time) -> Store {
        let inner = Arc::new(Inner { backend, time, driver: Mutex::new(None) });
        Store { inner, default_options: Arc::default() }
    }

    /// The same store, on which builders start from these options.
    #[must_use]
    pub fn with_default_options(self, options: Options) -> Store {
        Store { default_options: Arc::new(options), ..self }
    }

    /// The options that a builder on this store starts from.
    pub fn default_options(&self) -> &Options {
        &self.default_options
    }

    /// The backend itself.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.inner.backend
    }

    /// The backend as the type that it is, for what only this kind of store can do.
    pub fn backend_as<B: Backend>(&self) -> Option<&B> {
        let backend: &dyn Any = self.inner.backend.as_ref();
        backend.downcast_ref()
    }

    /// Reads who leads, without taking part.
    pub async fn observe(&self, on: &ElectionName) -> Result<LeaseView, Error> {
        Ok(LeaseView::new(self.inner.time.clone(), self.inner.backend.observe(on).await?))
    }

    /// The candidates that wait for this election, those of other processes included; `None` where the store does not know.
    pub async fn followers(&self, on: &ElectionName) -> Result<Option<Followers>, Error> {
        Ok(self.inner.backend.followers(on).await?)
    }

    /// Past leaderships, oldest first, where the store keeps them.
    pub async fn history(&self, on: &ElectionName) -> Result<Vec<Past>, Error> {
        Ok(self.inner.backend.history(on).await?)
    }

    /// The elections that the store can list.
    pub async fn elections(&self) -> Result<Vec<ElectionName>, Error> {
        Ok(self.inner.backend.elections().await?)
    }

    /// Asks the leader, wherever it runs, to step down, and to hand over to `to` if one is named. Returns the epoch
    /// that was asked to end; it ends when the leader has stopped its work.
    ///
    /// # Errors
    /// [`Error::NotLeader`] when nobody leads, [`Error::AlreadyLeader`] when `to` does, [`Error::CasFailed`] when the record
    /// changed in between; and what the store says.
    pub async fn ask_to_step_down(&self, on: &ElectionName, to: Option<CandidateId>) -> Result<Epoch, Error> {
        self.ask_leader(on, to.clone(), Ask::StepDown { to }).await
    }

    /// As [`ask_to_step_down`](Store::ask_to_step_down), but the leader goes on for `after`, by its own clock, from when it hears of this.
    /// Returns the epoch that was asked to end. If that leadership ends before, nothing is left to do. A further request to it replaces this one.
    ///
    /// # Errors
    /// As [`ask_to_step_down`](Store::ask_to_step_down).
    pub async fn ask_to_step_down_later(
        &self,
        on: &ElectionName,
        to: Option<CandidateId>,
        after: Duration,
    ) -> Result<Epoch, Error> {
        self.ask_leader(on, to.clone(), Ask::StepDownLater { to, after }).await
    }

    /// Pauses the election: whoever leads goes on, and once that leadership has ended, nobody is elected before the pause is over. It ends by
    /// itself, and replaces an earlier pause. `by` is for readers.
    ///
    /// Every candidate counts `span` on its own clock, from when it first sees the pause. What a leader writes with each renewal is what is
    /// left, so that a candidate that starts later waits for no longer than that, or than the whole span after its own start where
    /// nobody leads.
    ///
    /// # Errors
    /// [`Error::Settings`] for a span of zero or above [`PAUSE_MAX`](bellwether_core::PAUSE_MAX), [`Error::CasFailed`] when the record
    /// changed in between; and what the store says, such as that it cannot keep a pause.
    pub async fn pause(
        &self,
        on: &ElectionName,
        span: Duration,
        by: Option<CandidateId>,
    ) -> Result<(), Error> {
        let pause = Pause::chosen(span, by, Some(self.inner.time.wall()))?;
        self.set_pause(on, Some(&pause)).await
    }

    /// Ends the pause of the election, if there is one: candidates compete again at once.
    ///
    /// # Errors
    /// As [`pause`](Store::pause).
    pub async fn unpause(&self, on: &ElectionName) -> Result<(), Error> {
        self.set_pause(on, None).await
    }

    async fn set_pause(&self, on: &ElectionName, pause: Option<&Pause>) -> Result<(), Error> {
        match self.inner.backend.pause(on, pause).await {
            Outcome::Done(()) => Ok(()),
            Outcome::Denied(_) => Err(Error::CasFailed),
            Outcome::Unknown(error) | Outcome::Refused(error) => Err(error.into()),
        }
    }

    async fn ask_leader(
        &self,
        on: &ElectionName,
        to: Option<CandidateId>,
        what: Ask,
    ) -> Result<Epoch, Error> {
        let seen = self.inner.backend.observe(on).await?;
        // A holder that lives and does not say who it is can still be asked, or the store says why not.
        if seen.leader().is_none() && seen.proof != Proof::Alive {
            return Err(Error::NotLeader);
        }
        if to.is_some() && seen.leader() == to.as_ref() {
            return Err(Error::AlreadyLeader);
        }
        let epoch = seen.epoch.unwrap_or(Epoch::ZERO);
        match self.inner.backend.request(on, &Request { epoch, what }).await {
            Outcome::Done(()) => Ok(epoch),
            Outcome::Denied(now) if now.leader().is_some() => Err(Error::CasFailed),
            Outcome::Denied(_) => Err(Error::NotLeader),
            Outcome::Unknown(error) | Outcome::Refused(error) => Err(error.into()),
        }
    }

    /// Returns when the task that drives all elections of this store has answered: it runs, and so does its runtime. It does not wait for the
    /// store, whose outage is another matter. For watchdogs; each call is one message to that task.
    ///
    /// # Errors
    /// [`Error::NotStarted`] before the first election was started, [`Error::DriverGone`] when the task has ended.
    pub async fn driver_answers(&self) -> Result<(), Error> {
        let driver = self.running_driver().ok_or(Error::NotStarted)?;
        let (reply, answered) = oneshot::channel();
        // No candidate has this key: it asks for none.
        let _ = driver.send((StartKey::next(), DriverCommand::Ping(reply)));
        answered.await.unwrap_or(Err(Error::DriverGone))
    }

    pub(crate) fn time(&self) -> &Time {
        &self.inner.time
    }

    /// The driver, if there is one.
    pub(crate) fn running_driver(&self) -> Option<Commands> {
        lock(&self.inner.driver).clone()
    }

    /// Whether there was a driver, and it went away with its runtime.
    pub(crate) fn is_orphaned(&self) -> bool {
        self.running_driver().is_some_and(|driver| driver.is_closed())
    }

    /// The driver, which is started if this is the first election, or the first in another runtime.
    pub(crate) fn driver(&self) -> Result<Commands, Error> {
        let mut driver = lock(&self.inner.driver);
        match &*driver {
            Some(commands) if !commands.is_closed() => return Ok(commands.clone()),
            // Its runtime has ended, and took it along.
            Some(_) => self.inner.backend.change_runtime()?,
            None => {}
        }
        let commands =
            driver::spawn(Arc::clone(&self.inner.backend), self.inner.time.clone()).map_err(|error| {
                let sentence = "no timer could be made: raise the limit on open files";
                StoreError::new(ErrorKind::Exhausted, self.inner.backend.name(), sentence).caused_by(error)
            })?;
        *driver = Some(commands.clone());
        Ok(commands)
    }
}
