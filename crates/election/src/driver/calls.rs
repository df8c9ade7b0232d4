//! Calls to the backend, under way until they are answered.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bellwether_backend::{Backend, Past};
use bellwether_core::{
    Bid, Boot, Call, ElectionName, ErrorKind, Grant, Input, Outcome, ReleaseOptions, Request, StoreError,
};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, Stream};
use tracing::Instrument;

use super::Key;

/// What came back from a call.
pub(super) struct Answer {
    pub(super) key: Key,
    /// `None` where the machine does not care.
    pub(super) input: Option<Input>,
}

type UnderWay = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// All calls of a store that have not been answered.
pub(super) struct Calls {
    backend: Arc<dyn Backend>,
    keeps_history: bool,
    /// History could not be written, and that has been said.
    history_missed: Arc<AtomicBool>,
    claims: usize,
    under_way: FuturesUnordered<UnderWay>,
}

/// On whose behalf a call is made; becomes the fields of its span.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    pub(super) key: Key,
    pub(super) on: &'a ElectionName,
    pub(super) span: &'a tracing::Span,
}

impl Calls {
    pub(super) fn new(backend: Arc<dyn Backend>) -> Calls {
        let keeps_history = backend.capabilities().history;
        let history_missed = Arc::default();
        Calls { backend, keeps_history, history_missed, claims: 0, under_way: FuturesUnordered::new() }
    }

    pub(super) fn claim(&mut self, caller: Caller<'_>, call: Call, bid: Bid) {
        let (backend, on) = self.parts(caller);
        let name = backend.name();
        let work = async move { backend.claim(&on, &bid).await };
        self.claims += 1;
        self.push(caller, guarded(work, name), move |outcome| Some(Input::Claimed(call, flatten(outcome))));
    }

    pub(super) fn renew(&mut self, caller: Caller<'_>, call: Call, grant: Grant, sent: Boot) {
        let (backend, on) = self.parts(caller);
        let name = backend.name();
        let work = async move { backend.renew(&on, &grant, sent).await };
        self.push(caller, guarded(work, name), move |outcome| Some(Input::Renewed(call, flatten(outcome))));
    }

    pub(super) fn release(&mut self, caller: Caller<'_>, call: Call, grant: Grant, how: ReleaseOptions) {
        let (backend, on) = self.parts(caller);
        let name = backend.name();
        let work = async move { backend.release(&on, &grant, &how).await };
        self.push(caller, guarded(work, name), move |outcome| Some(Input::Released(call, flatten(outcome))));
    }

    pub(super) fn look(&mut self, caller: Caller<'_>, call: Call) {
        let (backend, on) = self.parts(caller);
        let name = backend.name();
        let work = async move { backend.observe(&on).await };
        self.push(caller, guarded(work, name), move |seen| {
            Some(Input::Observed(call, seen.and_then(|seen| seen)))
        });
    }

    pub(super) fn request(&mut self, caller: Caller<'_>, call: Call, request: Request) {
        let (backend, on) = self.parts(caller);
        let name = backend.name();
        let work = async move { backend.request(&on, &request).await };
        self.push(caller, guarded(work, name), move |outcome| Some(Input::Requested(call, flatten(outcome))));
    }

    /// How many claims are under way.
    pub(super) fn claims(&self) -> usize {
        self.claims
    }

    /// Whether nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// History is best effort: what cannot be written is logged and forgotten, and that somebody has to do something about it is said
    /// once, not with every leadership. True if an answer will come.
    pub(super) fn remember(&mut self, caller: Caller<'_>, past: Past) -> bool {
        if !self.keeps_history {
            return false;
        }
        let (backend, on) = self.parts(caller);
        let name = backend.name();
        let work = async move { backend.remember(&on, &past).await };
        let missed = Arc::clone(&self.history_missed);
        self.push(caller, guarded(work, name), move |result| {
            match result {
                Ok(Ok(())) => missed.store(false, Ordering::Relaxed),
                Ok(Err(error)) | Err(error)
                    if !error.is_retryable() && !missed.swap(true, Ordering::Relaxed) =>
                {
                    tracing::warn!(%error, "past leaderships are not kept; elections go on without");
                }
                Ok(Err(error)) | Err(error) => tracing::debug!(%error, "history not written"),
            }
            None
        });
        true
    }

    fn parts(&self, caller: Caller<'_>) -> (Arc<dyn Backend>, ElectionName) {
        (Arc::clone(&self.backend), caller.on.clone())
    }

    fn push<T: 'static>(
        &mut self,
        caller: Caller<'_>,
        work: impl Future<Output = T> + Send + 'static,
        input: impl FnOnce(T) -> Option<Input> + Send + 'static,
    ) {
        let key = caller.key;
        let call = async move { Answer { key, input: input(work.await) } };
        self.under_way.push(Box::pin(call.instrument(caller.span.clone())));
    }
}

impl Stream for Calls {
    type Item = Answer;

    /// Never ends: with nothing under way it waits for the next call.
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Answer>> {
        match Pin::new(&mut self.under_way).poll_next(context) {
            Poll::Ready(None) => Poll::Pending,
            Poll::Ready(Some(answer)) => {
                if matches!(answer.input, Some(Input::Claimed(..))) {
                    self.claims -= 1;
                }
                Poll::Ready(Some(answer))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

/// A backend that panics must not take the driver, and with it every other election, along.
async fn guarded<T>(work: impl Future<Output = T>, backend: &'static str) -> Result<T, StoreError> {
    let bug = |_| StoreError::new(ErrorKind::Bug, backend, "the backend panicked; please report it");
    AssertUnwindSafe(work).catch_unwind().await.map_err(bug)
}

/// After a panic nothing is known of what the call did.
fn flatten<T>(outcome: Result<Outcome<T>, StoreError>) -> Outcome<T> {
    outcome.unwrap_or_else(Outcome::Unknown)
}
