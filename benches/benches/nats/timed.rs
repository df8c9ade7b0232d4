//! A backend that notes how long renewals take: from when the election wanted one to when its answer was there.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether::backend::{Backend, Capabilities, Followers, Fut, Notices, Past};
use bellwether::backend::{Bid, Grant, Outcome, Parting, Request};
use bellwether::boot_now;
use bellwether::{Boot, Candidate, ElectionName, Seen, StoreError};

pub(crate) struct Timed<B> {
    pub(crate) inner: B,
    pub(crate) renewals: Arc<Renewals>,
}

#[derive(Default)]
pub(crate) struct Renewals {
    took: Mutex<Vec<Duration>>,
    failed: Mutex<Vec<String>>,
}

impl Renewals {
    /// What was noted since the last time: how long each took, and what those that failed said.
    pub(crate) fn take(&self) -> (Vec<Duration>, Vec<String>) {
        let took = std::mem::take(&mut *self.took.lock().unwrap_or_else(PoisonError::into_inner));
        let failed = std::mem::take(&mut *self.failed.lock().unwrap_or_else(PoisonError::into_inner));
        (took, failed)
    }

    fn note(&self, took: Duration, outcomes: &[Outcome<Grant>]) {
        self.took.lock().unwrap_or_else(PoisonError::into_inner).push(took);
        for outcome in outcomes.iter().filter(|outcome| !matches!(outcome, Outcome::Done(_))) {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{outcome:?}"));
        }
    }
}

impl<B: Backend> Backend for Timed<B> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        self.inner.claim(on, bid)
    }

    fn renew<'a>(&'a self, sent: Boot, held: &'a [(ElectionName, Grant)]) -> Fut<'a, Vec<Outcome<Grant>>> {
        Box::pin(async move {
            let outcomes = self.inner.renew(sent, held).await;
            self.renewals.note(boot_now().since(sent), &outcomes);
            outcomes
        })
    }

    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a Parting,
    ) -> Fut<'a, Outcome<()>> {
        self.inner.release(on, grant, how)
    }

    fn observe<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Seen, StoreError>> {
        self.inner.observe(on)
    }

    fn followers<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Option<Followers>, StoreError>> {
        self.inner.followers(on)
    }

    fn request<'a>(&'a self, on: &'a ElectionName, what: &'a Request) -> Fut<'a, Outcome<()>> {
        self.inner.request(on, what)
    }

    fn follow(&self, on: &ElectionName, interested: bool) {
        self.inner.follow(on, interested);
    }

    fn retire(&self, on: &ElectionName, who: &Candidate) {
        self.inner.retire(on, who);
    }

    fn signals(&self) -> Notices {
        self.inner.signals()
    }

    fn remember<'a>(&'a self, on: &'a ElectionName, past: &'a Past) -> Fut<'a, Result<(), StoreError>> {
        self.inner.remember(on, past)
    }

    fn history<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Vec<Past>, StoreError>> {
        self.inner.history(on)
    }

    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, StoreError>> {
        self.inner.elections()
    }
}
