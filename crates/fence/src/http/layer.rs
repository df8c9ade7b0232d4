//! The layer: what a request has to bring, and what becomes of it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bellwether_core::{ElectionName, Epoch};
use http::{HeaderMap, HeaderName, Method, Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::answer::Refusal;
use super::gate::{Gate, Permit};
use super::store::{EpochStore, Memory};
use super::{ELECTION, EPOCH};
use crate::{Found, fields};

/// Long enough for handlers that write to a database, and short beside a client's own patience.
const WAIT: Duration = Duration::from_secs(5);

/// Handles requests of the latest epoch of one election only; see the [module](super).
///
/// All services that are made of one layer, or of clones of it, share one fence: give one layer to all routes that write the same data.
#[derive(Clone)]
pub struct FenceLayer {
    fence: Arc<Fence>,
}

#[derive(Clone)]
struct Fence {
    election: ElectionName,
    epoch_header: HeaderName,
    election_header: HeaderName,
    every_method: bool,
    wait: Duration,
    gate: Arc<Gate>,
}

impl FenceLayer {
    /// For leaders of this election, with the latest epoch in memory: a restart forgets it.
    pub fn in_memory(election: impl Into<ElectionName>) -> FenceLayer {
        FenceLayer::with_store(election, Memory::default())
    }

    /// The same with the latest epoch in a fenced file in this directory, which outlives restarts.
    #[cfg(feature = "file")]
    pub fn in_directory(election: impl Into<ElectionName>, dir: impl Into<std::path::PathBuf>) -> FenceLayer {
        let election = election.into();
        let file = crate::file::FencedFile::new(dir, &election);
        FenceLayer::with_store(election, super::DirectoryStore::new(file))
    }

    /// The same with a store of your own.
    pub fn with_store(election: impl Into<ElectionName>, store: impl EpochStore) -> FenceLayer {
        let fence = Fence {
            election: election.into(),
            epoch_header: EPOCH,
            election_header: ELECTION,
            every_method: false,
            wait: WAIT,
            gate: Arc::new(Gate::new(Box::new(store))),
        };
        FenceLayer { fence: Arc::new(fence) }
    }

    /// Other names for the headers with the epoch and the election.
    #[must_use]
    pub fn headers(self, epoch: HeaderName, election: HeaderName) -> FenceLayer {
        self.with(|fence| (fence.epoch_header, fence.election_header) = (epoch, election))
    }

    /// Asks for the headers with methods that change nothing, too.
    #[must_use]
    pub fn every_method(self) -> FenceLayer {
        self.with(|fence| fence.every_method = true)
    }

    /// How long the first request of a later epoch waits for those of an earlier one, and for the store. Then it is answered with 503.
    #[must_use]
    pub fn wait(self, limit: Duration) -> FenceLayer {
        self.with(|fence| fence.wait = limit)
    }

    fn with(mut self, change: impl FnOnce(&mut Fence)) -> FenceLayer {
        change(Arc::make_mut(&mut self.fence));
        self
    }
}

impl<S> Layer<S> for FenceLayer {
    type Service = FenceService<S>;

    fn layer(&self, inner: S) -> FenceService<S> {
        FenceService { fence: Arc::clone(&self.fence), inner }
    }
}

/// A service behind a [`FenceLayer`].
#[derive(Clone)]
pub struct FenceService<S> {
    fence: Arc<Fence>,
    inner: S,
}

impl<S, Q, R> Service<Request<Q>> for FenceService<S>
where
    S: Service<Request<Q>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    Q: Send + 'static,
    R: From<String>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Q>) -> Self::Future {
        // The one that is ready, and not its clone.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let fence = Arc::clone(&self.fence);
        Box::pin(async move {
            if !fence.every_method && is_safe(request.method()) {
                return inner.call(request).await;
            }
            match fence.admit(request.headers()).await {
                Err(refusal) => Ok(refusal.answer(&fence.election, &fence.epoch_header)),
                Ok(permit) => {
                    request.extensions_mut().insert(permit.clone());
                    let response = inner.call(request).await;
                    drop(permit);
                    response
                }
            }
        })
    }
}

impl Fence {
    async fn admit(&self, headers: &HeaderMap) -> Result<Permit, Refusal> {
        let epoch = self.epoch(headers)?;
        match tokio::time::timeout(self.wait, self.gate.enter(epoch)).await {
            Ok(entered) => Ok(entered?),
            Err(_) => Err(Refusal::Busy),
        }
    }

    fn epoch(&self, headers: &HeaderMap) -> Result<Epoch, Refusal> {
        for name in [&self.epoch_header, &self.election_header] {
            if !headers.contains_key(name) {
                return Err(Refusal::Missing(name.clone()));
            }
        }
        // No text of ours has the character that stands for what is none.
        let texts = |name| headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("\u{fffd}"));
        match fields::read(texts(&self.epoch_header), texts(&self.election_header)) {
            Found::By(stamp) if stamp.election == self.election => Ok(stamp.epoch),
            Found::By(stamp) => Err(Refusal::OtherElection(stamp.election)),
            Found::Unreadable(what) => Err(Refusal::Malformed(what)),
            Found::Nothing | Found::Unstamped => Err(Refusal::Missing(self.epoch_header.clone())),
        }
    }
}

/// Methods that ask for no change (RFC 9110, 9.2.1).
fn is_safe(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE].contains(method)
}
