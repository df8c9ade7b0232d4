//! Calls to the API server: one client for everything that a process does there, and a bound on every call.
//!
//! Owns the client, which the first call makes and which is made anew when the server no longer accepts who we are: a token or
//! certificate that was replaced on disk is found that way. Every call that is under way has a connection of its own, so their number is
//! bounded; a watch has one beside them. A call that is given up closes its connection; what it sent may still take
//! effect. So nothing goes through here that would be wrong then: reads, and writes that name the version they replace.

use std::time::Duration;

use bellwether_core::{ErrorKind, StoreError, duration};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use http::{Method, Request};
use kube::core::WatchEvent;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, Semaphore};

use crate::config::Config;
use crate::errors::{BACKEND, CallFailure, unavailable};
use crate::lease_object::LeaseObject;

/// Changes of Leases, as the server sends them.
pub(crate) type LeaseEvents = BoxStream<'static, Result<WatchEvent<LeaseObject>, CallFailure>>;

/// Calls that are under way at once; others wait for their turn. A thousand claims that each open a connection cost both sides far more
/// than the claims themselves, and on a slow server all of them time out. This many keep a server busy that is 50 ms away.
const CALLS_AT_ONCE: usize = 32;
/// Of calls that no election depends on. They have turns of their own: the API server may take seconds for a pod or an Event, where others
/// have a word in it (admission webhooks), and no renewal waits for that.
const CALLS_BESIDE: usize = 4;

pub(crate) struct Api {
    config: Config,
    connected: Mutex<Option<Connected>>,
    turns: Semaphore,
    turns_beside: Semaphore,
}

#[derive(Clone)]
pub(crate) struct Connected {
    client: kube::Client,
    pub(crate) namespace: String,
    /// Tells one client from the one that replaced it.
    number: u64,
}

impl Api {
    /// Connects to nothing yet.
    pub(crate) fn new(config: Config) -> Api {
        let (turns, turns_beside) = (Semaphore::new(CALLS_AT_ONCE), Semaphore::new(CALLS_BESIDE));
        Api { config, connected: Mutex::default(), turns, turns_beside }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// The next call makes a new client: the tasks of the old one ended with their runtime. False where the client is the program's own.
    pub(crate) fn forget_client(&self) -> bool {
        if let Ok(mut connected) = self.connected.try_lock() {
            *connected = None;
        }
        self.config.can_reconnect()
    }

    pub(crate) async fn namespace(&self) -> Result<String, StoreError> {
        Ok(self.connected().await?.namespace)
    }

    /// The path of a Lease in the namespace.
    pub(crate) async fn lease_path(&self, name: &str) -> Result<String, StoreError> {
        Ok(format!("{}/{name}", self.leases_path().await?))
    }

    pub(crate) async fn leases_path(&self) -> Result<String, StoreError> {
        Ok(format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace().await?))
    }

    /// One call, answered within `limit`, waiting for its turn and connecting included.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync)>,
        limit: Duration,
    ) -> Result<T, CallFailure> {
        self.in_turn(&self.turns, request(method, path, body)?, limit).await
    }

    /// As [`call`](Api::call), for what no election depends on.
    pub(crate) async fn call_beside<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync)>,
        limit: Duration,
    ) -> Result<T, CallFailure> {
        self.in_turn(&self.turns_beside, request(method, path, body)?, limit).await
    }

    async fn in_turn<T: DeserializeOwned>(
        &self,
        turns: &Semaphore,
        request: Request<Vec<u8>>,
        limit: Duration,
    ) -> Result<T, CallFailure> {
        let asked = async {
            // Never closed.
            let _turn = turns.acquire().await;
            // In a box, made only now: a thousand calls may wait for their turn, and should take little room meanwhile.
            let send = |client: kube::Client, request| -> BoxFuture<'static, _> {
                Box::pin(async move { client.request::<T>(request).await })
            };
            Box::pin(self.ask(request, send)).await
        };
        within(limit, asked).await
    }

    /// Opens a watch; `limit` is for the server to begin.
    pub(crate) async fn watch(&self, path: &str, limit: Duration) -> Result<LeaseEvents, CallFailure> {
        let request = request(Method::GET, path, None::<&()>)?;
        let asked = self.ask(request, |client, request| {
            Box::pin(async move {
                let events = client.request_events::<LeaseObject>(request).await?;
                Ok(events.map(|event| event.map_err(failure)).boxed())
            })
        });
        within(limit, asked).await
    }

    async fn ask<T>(
        &self,
        request: Request<Vec<u8>>,
        send: impl Fn(kube::Client, Request<Vec<u8>>) -> BoxFuture<'static, kube::Result<T>>,
    ) -> Result<T, CallFailure> {
        let connected = self.connected().await.map_err(CallFailure::NoAnswer)?;
        let number = connected.number;
        let answer = send(connected.client, request.clone()).await.map_err(failure);
        if !answer.as_ref().is_err_and(|failure| failure.is(401)) || !self.config.can_reconnect() {
            return answer;
        }
        // Who we are may be another by now: files are read once more.
        let connected = self.reconnected(number).await.map_err(CallFailure::NoAnswer)?;
        send(connected.client, request).await.map_err(failure)
    }

    async fn connected(&self) -> Result<Connected, StoreError> {
        self.reconnected(0).await
    }

    /// A client that is not the one of this number.
    async fn reconnected(&self, stale: u64) -> Result<Connected, StoreError> {
        let mut connected = self.connected.lock().await;
        match &*connected {
            Some(present) if present.number != stale => Ok(present.clone()),
            _ => {
                let (client, namespace) = self.config.connect().await?;
                Ok(connected.insert(Connected { client, namespace, number: stale + 1 }).clone())
            }
        }
    }
}

async fn within<T>(
    limit: Duration,
    asked: impl Future<Output = Result<T, CallFailure>>,
) -> Result<T, CallFailure> {
    match tokio::time::timeout(limit, asked).await {
        Ok(answer) => answer,
        Err(_) => {
            let sentence = format!("the API server did not answer within {}", duration::print(limit));
            Err(CallFailure::NoAnswer(StoreError::new(ErrorKind::TimedOut, BACKEND, sentence)))
        }
    }
}

fn request(
    method: Method,
    path: &str,
    body: Option<&(impl Serialize + Sync)>,
) -> Result<Request<Vec<u8>>, CallFailure> {
    let bug = |error: &dyn std::error::Error| {
        let sentence = format!("the request for {path} cannot be written: {error}");
        CallFailure::NoAnswer(StoreError::new(ErrorKind::Bug, BACKEND, sentence))
    };
    let bytes = body.map(serde_json::to_vec).transpose().map_err(|error| bug(&error))?.unwrap_or_default();
    // Of the patches, the one that changes nothing but what it names.
    let media = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header(http::header::CONTENT_TYPE, media);
    request.body(bytes).map_err(|error| bug(&error))
}

fn failure(error: kube::Error) -> CallFailure {
    match error {
        kube::Error::Api(status) => CallFailure::Answered(status),
        kube::Error::Auth(error) => CallFailure::NoAnswer(
            unavailable("the credentials for the API server cannot be had").caused_by(error),
        ),
        kube::Error::SerdeError(error) => {
            CallFailure::NoAnswer(unavailable("the answer of the API server makes no sense").caused_by(error))
        }
        error => CallFailure::NoAnswer(unavailable("the API server cannot be reached").caused_by(error)),
    }
}
