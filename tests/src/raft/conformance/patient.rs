//! A candidate that asks again when it was not told how a call ended, and that renews in time.
//!
//! The suite's own faults are put on top of it, so it repeats none of the calls that a case wants to be unknown.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::{Backend, Creation, Followers, Forward, Fut, Past, lock};
use bellwether_core::{
    Bid, Boot, Clock, ElectionName, Epoch, Grant, Incarnation, Outcome, ReleaseOptions, Request, Seen,
    StoreError,
};
use bellwether_deadman::boot_now;

use super::met::Met;
use crate::PATIENCE;

/// Before a call is made again: the client has asked for a long time by itself.
const PAUSE: Duration = Duration::from_millis(20);

/// Renewals in a ttl, as candidates have them.
const RENEW: u32 = 3;

/// How a call ended.
enum Ending {
    /// The cluster has answered.
    Answered,
    /// The client has refused it, perhaps without asking.
    Refused,
    /// Nobody knows.
    Unknown,
}

/// Calls of which nobody knows how they ended are made again.
pub(super) struct Patient {
    inner: Arc<dyn Backend>,
    clock: Arc<dyn Clock>,
    met: Arc<Met>,
    /// Leaderships of which a release was answered.
    over: Mutex<HashSet<(ElectionName, Epoch, Incarnation)>>,
}

impl Patient {
    pub(super) fn new(inner: Arc<dyn Backend>, clock: Arc<dyn Clock>, met: Arc<Met>) -> Patient {
        Patient { inner, clock, met, over: Mutex::default() }
    }

    /// Calls until it is known how the call ended; also says whether it was made more than once.
    async fn known<'a, T>(
        &self,
        on: Option<&ElectionName>,
        call: impl Fn() -> Fut<'a, T>,
        ending: impl Fn(&T) -> Ending,
    ) -> (T, bool) {
        let by = boot_now() + PATIENCE;
        let mut is_repeated = false;
        loop {
            self.met.begins(on);
            let answer = call().await;
            match ending(&answer) {
                Ending::Answered => self.met.answered(),
                Ending::Unknown if boot_now() < by => {
                    self.met.repeats();
                    is_repeated = true;
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                Ending::Refused | Ending::Unknown => {}
            }
            return (answer, is_repeated);
        }
    }

    async fn read<'a, T>(
        &self,
        on: Option<&ElectionName>,
        call: impl Fn() -> Fut<'a, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let ending = |answer: &Result<T, StoreError>| match answer {
            Ok(_) => Ending::Answered,
            Err(error) if error.is_retryable() => Ending::Unknown,
            Err(_) => Ending::Refused,
        };
        self.known(on, call, ending).await.0
    }

    async fn changed<'a, T>(
        &self,
        on: &ElectionName,
        call: impl Fn() -> Fut<'a, Outcome<T>>,
    ) -> (Outcome<T>, bool) {
        let ending = |outcome: &Outcome<T>| match outcome {
            Outcome::Done(_) | Outcome::Denied(_) => Ending::Answered,
            Outcome::Unknown(_) => Ending::Unknown,
            Outcome::Refused(_) => Ending::Refused,
        };
        self.known(Some(on), call, ending).await
    }

    /// A leader whose claim was answered late renews at once: its renewal is due. What it has lost meanwhile it claims again.
    async fn renewed(&self, on: &ElectionName, bid: &Bid, mut outcome: Outcome<Grant>) -> Outcome<Grant> {
        let by = boot_now() + PATIENCE;
        while let Outcome::Done(grant) = &outcome
            && self.clock.boot() > grant.counted_from + grant.ttl / RENEW
            && boot_now() < by
        {
            let sent = self.clock.boot();
            outcome = match self.changed(on, || self.inner.renew(on, grant, sent)).await.0 {
                Outcome::Denied(_) => self.claimed(on, bid).await,
                outcome => outcome,
            };
        }
        outcome
    }

    /// Each claim counts from its own start.
    async fn claimed(&self, on: &ElectionName, bid: &Bid) -> Outcome<Grant> {
        let claim = || -> Fut<'_, _> {
            Box::pin(async move {
                let bid = Bid { sent: self.clock.boot(), ..bid.clone() };
                self.inner.claim(on, &bid).await
            })
        };
        self.changed(on, claim).await.0
    }

    /// Whether this leadership may still have been there to be released.
    fn may_lead(&self, on: &ElectionName, grant: &Grant) -> bool {
        let is_over = lock(&self.over).contains(&(on.clone(), grant.epoch, grant.incarnation));
        !is_over && self.clock.boot() < grant.counted_from + grant.ttl
    }
}

impl Forward for Patient {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        Box::pin(async move {
            let claimed = self.claimed(on, bid).await;
            self.renewed(on, bid, claimed).await
        })
    }

    fn renew<'a>(&'a self, on: &'a ElectionName, grant: &'a Grant, sent: Boot) -> Fut<'a, Outcome<Grant>> {
        Box::pin(async move { self.changed(on, || self.inner.renew(on, grant, sent)).await.0 })
    }

    /// A release that was unknown and is now denied has happened, if there was anything to release.
    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a ReleaseOptions,
    ) -> Fut<'a, Outcome<()>> {
        Box::pin(async move {
            let may_lead = self.may_lead(on, grant);
            let (outcome, is_repeated) = self.changed(on, || self.inner.release(on, grant, how)).await;
            if matches!(outcome, Outcome::Done(()) | Outcome::Denied(_)) {
                lock(&self.over).insert((on.clone(), grant.epoch, grant.incarnation));
            }
            match outcome {
                Outcome::Denied(_) if is_repeated && may_lead => Outcome::Done(()),
                outcome => outcome,
            }
        })
    }

    fn observe<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Seen, StoreError>> {
        Box::pin(self.read(Some(on), || self.inner.observe(on)))
    }

    fn followers<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Option<Followers>, StoreError>> {
        Box::pin(self.read(Some(on), || self.inner.followers(on)))
    }

    fn request<'a>(&'a self, on: &'a ElectionName, what: &'a Request) -> Fut<'a, Outcome<()>> {
        Box::pin(async move { self.changed(on, || self.inner.request(on, what)).await.0 })
    }

    fn remember<'a>(&'a self, on: &'a ElectionName, past: &'a Past) -> Fut<'a, Result<(), StoreError>> {
        Box::pin(self.read(Some(on), || self.inner.remember(on, past)))
    }

    fn history<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Vec<Past>, StoreError>> {
        Box::pin(self.read(Some(on), || self.inner.history(on)))
    }

    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, StoreError>> {
        Box::pin(self.read(None, || self.inner.elections()))
    }

    /// A creation that was unknown and finds its own text has happened.
    fn create_once<'a>(&'a self, name: &'a ElectionName, bytes: &'a [u8]) -> Fut<'a, Creation> {
        Box::pin(async move {
            let ending = |creation: &Creation| match creation {
                Creation::Created | Creation::Exists(_) => Ending::Answered,
                Creation::Unknown(_) => Ending::Unknown,
                Creation::Refused(_) => Ending::Refused,
            };
            match self.known(Some(name), || self.inner.create_once(name, bytes), ending).await {
                (Creation::Exists(found), true) if found == bytes => Creation::Created,
                (creation, _) => creation,
            }
        })
    }

    fn read_once<'a>(&'a self, name: &'a ElectionName) -> Fut<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(self.read(Some(name), || self.inner.read_once(name)))
    }
}
