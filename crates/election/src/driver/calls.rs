//! Calls to the backend, under way until they are answered.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bellwether_backend::{Backend, Past};
use bellwether_core::{Call, ElectionName, ErrorKind, Input, Outcome, StoreCall, StoreError};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, Stream};
use tokio::sync::Semaphore;
use tracing::Instrument;

use super::StartKey;
use crate::observer::Stopwatch;

/// What came back from a call.
pub(super) struct StoreAnswer {
    pub(super) key: StartKey,
    /// `None` after a write of history, which the machine does not know of.
    pub(super) input: Option<Input>,
}

/// Writes of history that are under way at once. When a thousand elections are won together, the others wait and take little room, and
/// leave the store to claims and renewals.
const HISTORY_AT_ONCE: usize = 16;

type UnderWay = Pin<Box<dyn Future<Output = StoreAnswer> + Send>>;

/// All calls of a store that have not been answered.
pub(super) struct Calls {
    backend: Arc<dyn Backend>,
    keeps_history: bool,
    history_turns: Arc<Semaphore>,
    /// History could not be written, and that has been said.
    history_missed: Arc<AtomicBool>,
    claims: usize,
    under_way: FuturesUnordered<UnderWay>,
}

/// On whose behalf a call is made; becomes the fields of its span.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    pub(super) key: StartKey,
    pub(super) on: &'a ElectionName,
    pub(super) span: &'a tracing::Span,
}

impl Calls {
    pub(super) fn new(backend: Arc<dyn Backend>) -> Calls {
        let keeps_history = backend.capabilities().history;
        Calls {
            backend,
            keeps_history,
            history_turns: Arc::new(Semaphore::new(HISTORY_AT_ONCE)),
            history_missed: Arc::default(),
            claims: 0,
            under_way: FuturesUnordered::new(),
        }
    }

    /// Makes a call. Where somebody watches, the watch is stopped the moment that the answer is here, and not when its turn comes.
    pub(super) fn make(&mut self, caller: Caller<'_>, call: Call, what: StoreCall, watch: Option<Stopwatch>) {
        self.claims += usize::from(matches!(what, StoreCall::Claim(_)));
        self.push(caller, move |backend, on| async move {
            let answer = answer(&*backend, &on, call, what).await;
            if let Some(watch) = watch {
                watch.stop(&answer);
            }
            Some(answer)
        });
    }

    /// How many claims are under way.
    pub(super) fn claims(&self) -> usize {
        self.claims
    }

    /// Whether nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Writes history, which is best effort: a write that fails is logged and forgotten. An error that somebody has to fix is a warning
    /// once, not with every leadership. True if an answer will come.
    pub(super) fn remember(&mut self, caller: Caller<'_>, past: Past) -> bool {
        if !self.keeps_history {
            return false;
        }
        let (missed, turns) = (Arc::clone(&self.history_missed), Arc::clone(&self.history_turns));
        self.push(caller, move |backend, on| async move {
            // Never closed.
            let _turn = turns.acquire().await;
            match guarded(backend.name(), async { backend.remember(&on, &past).await }).await.flatten() {
                Ok(()) => missed.store(false, Ordering::Relaxed),
                Err(error) if !error.is_retryable() && !missed.swap(true, Ordering::Relaxed) => {
                    tracing::warn!(%error, "past leaderships are not kept; elections go on without");
                }
                Err(error) => tracing::debug!(%error, "history not written"),
            }
            None
        });
        true
    }

    fn push<F>(&mut self, caller: Caller<'_>, call: impl FnOnce(Arc<dyn Backend>, ElectionName) -> F)
    where
        F: Future<Output = Option<Input>> + Send + 'static,
    {
        let key = caller.key;
        let work = call(Arc::clone(&self.backend), caller.on.clone());
        let answer = async move { StoreAnswer { key, input: work.await } };
        self.under_way.push(Box::pin(answer.instrument(caller.span.clone())));
    }
}

impl Stream for Calls {
    type Item = StoreAnswer;

    /// Never ends: with nothing under way it waits for the next call.
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StoreAnswer>> {
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

async fn answer(backend: &dyn Backend, on: &ElectionName, call: Call, what: StoreCall) -> Input {
    let name = backend.name();
    match what {
        StoreCall::Claim(bid) => {
            Input::Claimed(call, outcome(name, async { backend.claim(on, &bid).await }).await)
        }
        StoreCall::Renew { grant, sent } => {
            Input::Renewed(call, outcome(name, async { backend.renew(on, &grant, sent).await }).await)
        }
        StoreCall::Release(grant, how) => {
            Input::Released(call, outcome(name, async { backend.release(on, &grant, &how).await }).await)
        }
        StoreCall::Observe => {
            Input::Observed(call, guarded(name, async { backend.observe(on).await }).await.flatten())
        }
        StoreCall::Request(request) => {
            Input::Requested(call, outcome(name, async { backend.request(on, &request).await }).await)
        }
    }
}

/// After a panic nothing is known of what the call did.
async fn outcome<T>(backend: &'static str, call: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    guarded(backend, call).await.unwrap_or_else(Outcome::Unknown)
}

/// A backend that panics must not end the driver, and with it every other election.
async fn guarded<T>(backend: &'static str, call: impl Future<Output = T>) -> Result<T, StoreError> {
    let bug = |_| StoreError::new(ErrorKind::Bug, backend, "the backend panicked; please report it");
    AssertUnwindSafe(call).catch_unwind().await.map_err(bug)
}
