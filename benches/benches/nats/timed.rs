//! A backend that notes how long renewals take: from when the election wanted one to when its answer was there.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether::backend::{Backend, Forward, Fut, Grant, Outcome};
use bellwether::{Boot, ElectionName, boot_now};

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

    fn note(&self, took: Duration, outcome: &Outcome<Grant>) {
        self.took.lock().unwrap_or_else(PoisonError::into_inner).push(took);
        if !matches!(outcome, Outcome::Done(_)) {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{outcome:?}"));
        }
    }
}

impl<B: Backend> Forward for Timed<B> {
    fn inner(&self) -> &dyn Backend {
        &self.inner
    }

    fn renew<'a>(&'a self, on: &'a ElectionName, grant: &'a Grant, sent: Boot) -> Fut<'a, Outcome<Grant>> {
        Box::pin(async move {
            let outcome = self.inner.renew(on, grant, sent).await;
            self.renewals.note(boot_now().since(sent), &outcome);
            outcome
        })
    }
}
