//! One connection for everything that a process does on these servers.
//!
//! Owns the client, what is known of the link, and the bound on every call. It is made by the first call and kept for good: the
//! client finds another server by itself, as often as it takes. Calls wait for a link that is down as long as they may; one that is
//! under way when the link goes down ends at once, because its answer is lost.
//!
//! A call that was handed to the client may be sent long after its caller has given up, over the next link. So nothing goes
//! through here that would be wrong then: reads, and writes that name the revision they replace.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_nats::{
    Client, ClientError, ConnectErrorKind, Event, HeaderMap, Message, RequestErrorKind, ServerError,
    connection::State,
};
use bellwether_backend::lock;
use bellwether_core::{ErrorKind, StoreError};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::{broadcast, watch};

use crate::config::Config;
use crate::connecting;
use crate::errors::{BACKEND, CallFailure, invalid, unavailable};

/// Reconnecting is tried this often at the latest: a server that is back must not wait for its clients.
const RECONNECT_DELAY_MAX: Duration = Duration::from_millis(500);
/// How often a call that waits for the link asks for it.
const LINK_INTERVAL: Duration = Duration::from_millis(100);
/// After this many refused logins in a row, some four seconds, the login counts as wrong for good; fewer may come from a server that has
/// not yet read its accounts.
const UNWELCOME_AFTER: u32 = 10;
/// Refusals that may wait to be matched with the calls they are about.
const REFUSALS_MAX: usize = 256;

/// What is known of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkState {
    pub(crate) up: bool,
    /// How often it came up.
    pub(crate) times: u64,
    /// How often in a row the servers have rejected the login since it went down.
    pub(crate) unwelcome: u32,
}

/// One try to connect, which everybody waits for together.
type ConnectAttempt = Shared<BoxFuture<'static, Result<Client, StoreError>>>;

pub(crate) struct NatsConnection {
    config: Arc<Config>,
    client: OnceLock<Client>,
    attempt: Mutex<Option<ConnectAttempt>>,
    link: Arc<watch::Sender<LinkState>>,
    /// Subjects that the server has just closed to us.
    refusals: broadcast::Sender<PermissionViolation>,
}

impl NatsConnection {
    /// Connects to nothing yet.
    pub(crate) fn new(config: Config) -> NatsConnection {
        let (refusals, _) = broadcast::channel(REFUSALS_MAX);
        NatsConnection {
            config: Arc::new(config),
            client: OnceLock::new(),
            attempt: Mutex::default(),
            link: Arc::default(),
            refusals,
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn link(&self) -> watch::Receiver<LinkState> {
        self.link.subscribe()
    }

    /// Whether there is a link at the moment.
    pub(crate) fn is_up(&self) -> bool {
        self.link.borrow().up
    }

    /// The client, connected for the first time if need be.
    pub(crate) async fn client(&self) -> Result<&Client, StoreError> {
        match self.client.get() {
            Some(client) => Ok(client),
            None => self.attempt().await.map(|client| self.client.get_or_init(|| client)),
        }
    }

    /// Asks, and waits for the answer as long as `limit`, connecting included.
    pub(crate) async fn request(
        &self,
        subject: &str,
        headers: HeaderMap,
        payload: Vec<u8>,
        limit: Duration,
    ) -> Result<Message, CallFailure> {
        let mut link = self.link.subscribe();
        // Before anything is sent, or the refusal comes before somebody listens for it.
        let mut refusals = self.refusals.subscribe();
        let asked = async {
            let client = self.client().await.map_err(CallFailure::NoAnswer)?;
            self.until_up(client, &mut link).await?;
            let request = async_nats::Request::new().payload(payload.into()).timeout(None);
            let request = if headers.is_empty() { request } else { request.headers(headers) };
            tokio::select! {
                answer = client.send_request(subject.to_owned(), request) => answer.map_err(|error| match error.kind() {
                    RequestErrorKind::NoResponders => CallFailure::NobodyListens,
                    RequestErrorKind::MaxPayloadExceeded => {
                        let sentence = "the record is larger than the server takes: write less metadata, or raise max_payload";
                        CallFailure::NoAnswer(invalid(sentence).caused_by(error))
                    }
                    _ => CallFailure::NoAnswer(unavailable("the request failed").caused_by(error)),
                }),
                error = refused(&mut refusals, subject) => Err(CallFailure::NoAnswer(error)),
                _ = link.wait_for(|link| !link.up) => {
                    Err(CallFailure::NoAnswer(unavailable("the connection was lost before the answer came")))
                }
            }
        };
        match tokio::time::timeout(limit, asked).await {
            Ok(answer) => answer,
            Err(_) => {
                let sentence = format!("no answer within {}", bellwether_core::duration::print(limit));
                Err(CallFailure::NoAnswer(StoreError::new(ErrorKind::TimedOut, BACKEND, sentence)))
            }
        }
    }

    /// Events tell; but they may be dropped when very many come at once, and calls must not wait for ever on one that was.
    async fn until_up(
        &self,
        client: &Client,
        link: &mut watch::Receiver<LinkState>,
    ) -> Result<(), CallFailure> {
        loop {
            let now = *link.borrow_and_update();
            if now.up {
                return Ok(());
            }
            if now.unwelcome >= UNWELCOME_AFTER {
                return Err(CallFailure::NoAnswer(connecting::unwelcome(&self.config.identity)));
            }
            tokio::select! {
                _ = link.changed() => {}
                () = tokio::time::sleep(LINK_INTERVAL) => {
                    if client.connection_state() == State::Connected {
                        came_up(&self.link);
                    }
                }
            }
        }
    }

    /// Connects, or waits for whoever is at it. Each attempt is a task of its own: a call that gives up does not end it, and calls that
    /// wait for it all end with it, instead of trying one after the other.
    fn attempt(&self) -> ConnectAttempt {
        let mut under_way = lock(&self.attempt);
        if let Some(attempt) = under_way.as_ref().filter(|attempt| !matches!(attempt.peek(), Some(Err(_)))) {
            return attempt.clone();
        }
        let (link, refusals) = (Arc::clone(&self.link), self.refusals.clone());
        let task = tokio::spawn(connect(Arc::clone(&self.config), link, refusals));
        let cut_short = |error| unavailable("connecting was cut short").caused_by(error);
        let attempt = async move { task.await.unwrap_or_else(|error| Err(cut_short(error))) };
        let attempt: BoxFuture<'static, Result<Client, StoreError>> = Box::pin(attempt);
        under_way.insert(attempt.shared()).clone()
    }
}

async fn connect(
    config: Arc<Config>,
    link: Arc<watch::Sender<LinkState>>,
    refusals: broadcast::Sender<PermissionViolation>,
) -> Result<Client, StoreError> {
    let heard_by = Arc::clone(&link);
    let options = connecting::options(&config)?
        .name("bellwether")
        .ping_interval(config.ping_interval)
        .connection_timeout(config.connect_timeout)
        .reconnect_delay_callback(|attempts| {
            let delay = Duration::from_millis(10).saturating_mul(1 << attempts.min(10));
            if attempts <= 1 { Duration::ZERO } else { delay.min(RECONNECT_DELAY_MAX) }
        })
        .event_callback(move |event| {
            heard(&heard_by, &refusals, event);
            async {}
        });
    let options = if config.discovers { options } else { options.ignore_discovered_servers() };
    let options = match &config.inbox {
        Some(prefix) => options.custom_inbox_prefix(prefix),
        None => options,
    };
    let client = options.connect(connecting::servers(&config)?).await;
    let client = client.map_err(|error| connecting::not_connected(error, &config))?;
    // The event may be a moment behind, and calls wait for it.
    came_up(&link);
    Ok(client)
}

fn heard(link: &watch::Sender<LinkState>, refusals: &broadcast::Sender<PermissionViolation>, event: Event) {
    match event {
        Event::Connected => came_up(link),
        Event::Disconnected | Event::Closed => link.send_modify(|link| link.up = false),
        Event::ClientError(ClientError::Other(kind)) => link.send_modify(|link| {
            // The client tells the kind of its failure by its name only.
            let unwelcome = [ConnectErrorKind::AuthorizationViolation, ConnectErrorKind::Authentication];
            let unwelcome = unwelcome.iter().any(|one| one.to_string() == kind);
            link.unwelcome = if unwelcome { link.unwelcome.saturating_add(1) } else { 0 };
        }),
        Event::ServerError(ServerError::Other(text)) => {
            if let Some(refusal) = PermissionViolation::read(&text) {
                // Nobody listening is fine: then no call is about it.
                let _ = refusals.send(refusal);
            }
        }
        _ => {}
    }
}

fn came_up(link: &watch::Sender<LinkState>) {
    link.send_if_modified(|link| {
        let news = !link.up;
        if news {
            *link = LinkState { up: true, times: link.times + 1, unwelcome: 0 };
        }
        news
    });
}

/// What the server does not let this user do, and with which subject.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PermissionViolation {
    Publish(String),
    Subscribe(String),
}

impl PermissionViolation {
    /// Reads `Permissions Violation for Publish to "subject"` and its like for subscriptions.
    fn read(text: &str) -> Option<PermissionViolation> {
        let about = text.trim_matches('\'').strip_prefix("Permissions Violation for ")?;
        let subject = about.split('"').nth(1)?.to_owned();
        Some(if about.starts_with("Publish") {
            PermissionViolation::Publish(subject)
        } else {
            PermissionViolation::Subscribe(subject)
        })
    }
}

/// Ends when the server refuses this subject, or the one that answers come to.
async fn refused(refusals: &mut broadcast::Receiver<PermissionViolation>, subject: &str) -> StoreError {
    loop {
        match refusals.recv().await {
            Ok(PermissionViolation::Publish(closed)) if closed == subject => {
                let sentence = format!("this user may not publish to {closed}: give it that permission");
                return StoreError::new(ErrorKind::PermissionDenied, BACKEND, sentence);
            }
            Ok(PermissionViolation::Subscribe(closed)) if closed.ends_with(".*") => {
                let sentence = format!(
                    "this user may not subscribe to {closed}, where answers come to: give it that permission, or name a prefix \
                     that it has with inbox=PREFIX"
                );
                return StoreError::new(ErrorKind::PermissionDenied, BACKEND, sentence);
            }
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_read_from_what_servers_say() {
        for (text, refusal) in [
            (
                "Permissions Violation for Publish to \"$KV.b.k\"",
                Some(PermissionViolation::Publish("$KV.b.k".to_owned())),
            ),
            (
                "'Permissions Violation for Subscription to \"_INBOX.a.*\"'",
                Some(PermissionViolation::Subscribe("_INBOX.a.*".to_owned())),
            ),
            ("Maximum Payload Violation", None),
        ] {
            assert_eq!(PermissionViolation::read(text), refusal, "{text}");
        }
    }
}
