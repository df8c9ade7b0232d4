//! One connection to some node of the cluster, and to another one when that fails.
//!
//! Any node serves any request: one that does not lead passes it on to the leader. So a client stays with the node that it has, and moves
//! on when the node is gone, does not answer, or knows no leader. Everything that goes through here may be sent twice: commands have a
//! number by which the cluster knows them, and the rest are reads and keepalives.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::lock;
use bellwether_cluster::ClientConfig;
use bellwether_cluster::transport::{
    CallError, Connection, DialCause, DialError, Dialler, Hello, Intended, Limits, Purpose, Refused,
};
use bellwether_core::{Boot, Clock, ErrorKind, StoreError};
use tokio::sync::{Mutex as AsyncMutex, watch};

use crate::errors::{BACKEND, unavailable};
use crate::protocol::{ClientRequest, Question, Reply, decode, encode};

/// For an address to accept a connection, and for the handshake: a node that is slower is passed over while there are others.
const CONNECT_LIMIT: Duration = Duration::from_millis(1_000);
/// For one try at one node, at the longest and shortest; in between it is half of what the whole call may take.
const TRY_LIMITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(2));
/// Before the nodes are asked again when none of them knows a leader: a fraction of the time that an election takes.
const ELECTION_PAUSE: Duration = Duration::from_millis(25);
/// Before the nodes are dialled again when none was reached.
const REDIAL_PAUSE: Duration = Duration::from_millis(100);

/// The way to a cluster.
pub(crate) struct Link {
    dialler: Dialler,
    addresses: Vec<String>,
    discovers: bool,
    clock: Arc<dyn Clock>,
    /// Which address comes next. Held while somebody dials: the others wait for that connection.
    dialling: AsyncMutex<usize>,
    /// A node said that the leader is there.
    hint: Mutex<Option<String>>,
    current: watch::Sender<Option<Connection>>,
}

impl Link {
    /// Connects with the first request.
    pub(crate) fn new(config: ClientConfig, clock: Arc<dyn Clock>) -> Result<Link, StoreError> {
        let mut limits = Limits::default();
        limits.connect = CONNECT_LIMIT;
        limits.handshake = CONNECT_LIMIT;
        limits.dial = 2 * CONNECT_LIMIT;
        let dialler = Dialler::new(config.security)
            .map_err(|error| StoreError::new(ErrorKind::Misconfigured, BACKEND, error.to_string()))?;
        Ok(Link {
            dialler: dialler.with_limits(limits),
            addresses: config.addresses,
            discovers: config.discovers,
            clock,
            dialling: AsyncMutex::new(0),
            hint: Mutex::default(),
            current: watch::Sender::new(None),
        })
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub(crate) fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// The connection that requests use now, and every change of it.
    pub(crate) fn current(&self) -> watch::Receiver<Option<Connection>> {
        self.current.subscribe()
    }

    /// Asks until somebody answers, for as long as `limit`. Returns the instant before the request left that was answered.
    pub(crate) async fn ask(&self, what: &Question, limit: Duration) -> Result<(Boot, Reply), StoreError> {
        let try_limit = (limit / 2).clamp(TRY_LIMITS.0, TRY_LIMITS.1).min(limit);
        let request = ClientRequest::new(what.clone(), try_limit);
        let mut failure = Failure::default();
        let asked = tokio::time::timeout(limit, self.ask_until_answered(&request, try_limit, &mut failure));
        match asked.await {
            Ok(answered) => answered,
            Err(_) => Err(failure.at_the_end(limit)),
        }
    }

    async fn ask_until_answered(
        &self,
        request: &ClientRequest,
        try_limit: Duration,
        failure: &mut Failure,
    ) -> Result<(Boot, Reply), StoreError> {
        let bytes = encode(request);
        let mut unreached = 0;
        loop {
            let connection = match self.connection().await {
                Ok(connection) => connection,
                Err(error) => {
                    let kind = error.kind();
                    failure.last = Some(error);
                    // What no node will ever accept is said at once, unless an earlier try may have arrived.
                    if !kind.is_retryable() && !failure.may_have_arrived {
                        return Err(failure.at_the_end(Duration::ZERO));
                    }
                    tokio::time::sleep(REDIAL_PAUSE).await;
                    continue;
                }
            };
            let sent = self.clock.boot();
            match connection.call(bytes.clone(), try_limit).await {
                Ok(answer) => match decode(&answer).map_err(unavailable)? {
                    Reply::NotLeader { leader } => {
                        failure.last = Some(unavailable(
                            "the cluster has no leader: a majority of its nodes has to be up",
                        ));
                        unreached += 1;
                        self.leave(&connection, leader);
                        if unreached >= self.addresses.len() {
                            tokio::time::sleep(ELECTION_PAUSE).await;
                        }
                    }
                    Reply::Unknown { why } => {
                        failure.may_have_arrived = true;
                        failure.last = Some(unavailable(why));
                        self.leave(&connection, None);
                        tokio::time::sleep(ELECTION_PAUSE).await;
                    }
                    reply => return Ok((sent, reply)),
                },
                Err(CallError::Failed(why)) => return Err(misunderstood(why)),
                Err(error) => {
                    failure.may_have_arrived |= !error.is_certainly_not_sent();
                    failure.last = Some(unavailable(error.to_string()));
                    self.leave(&connection, None);
                }
            }
        }
    }

    /// The connection, made anew if need be.
    pub(crate) async fn connection(&self) -> Result<Connection, StoreError> {
        if let Some(open) = self.open_connection() {
            return Ok(open);
        }
        let mut next = self.dialling.lock().await;
        if let Some(open) = self.open_connection() {
            return Ok(open);
        }
        let hint = lock(&self.hint).take();
        let mut failure = None;
        let in_turn = (0..self.addresses.len()).map(|step| (*next + step) % self.addresses.len());
        let addresses = hint
            .into_iter()
            .map(|hint| (None, hint))
            .chain(in_turn.map(|place| (Some(place), self.addresses[place].clone())).collect::<Vec<_>>());
        for (place, address) in addresses {
            let hello =
                Hello { purpose: Purpose::Client, cluster: None, from: None, intended: Intended::Anyone };
            // Before it is dialled: a call that gives up meanwhile must not leave the next one with the same silent address.
            if let Some(place) = place {
                *next = (place + 1) % self.addresses.len();
            }
            match self.dial(&address, &hello).await {
                Ok(connection) => {
                    self.current.send_replace(Some(connection.clone()));
                    return Ok(connection);
                }
                // What can pass counts more than what cannot: one node of several may be set up wrongly.
                Err(error) => {
                    if failure.as_ref().is_none_or(|known: &StoreError| !known.is_retryable()) {
                        failure = Some(error);
                    }
                }
            }
        }
        Err(failure.unwrap_or_else(|| unavailable("the URL names no node")))
    }

    /// A connection of its own to one node.
    pub(crate) async fn dial(&self, address: &str, hello: &Hello) -> Result<Connection, StoreError> {
        self.dialler.connect(address, hello).await.map_err(|error| not_connected(&error))
    }

    fn open_connection(&self) -> Option<Connection> {
        self.current.borrow().clone().filter(Connection::is_open)
    }

    /// This connection is of no use: the next request takes another one.
    pub(crate) fn leave(&self, connection: &Connection, leader: Option<String>) {
        *lock(&self.hint) = leader.filter(|_| self.discovers);
        self.current.send_if_modified(|current| {
            let is_this = current.as_ref().is_some_and(|one| one.is_same(connection));
            if is_this {
                *current = None;
            }
            is_this
        });
    }
}

/// What went wrong so far in one call.
#[derive(Default)]
struct Failure {
    last: Option<StoreError>,
    may_have_arrived: bool,
}

impl Failure {
    /// The call ends like this. A request that may have arrived never ends in an error that says that it certainly did nothing.
    fn at_the_end(&mut self, limit: Duration) -> StoreError {
        let timed_out = || {
            let sentence = format!("no node answered within {}", bellwether_core::duration::print(limit));
            StoreError::new(ErrorKind::TimedOut, BACKEND, sentence)
        };
        let error = self.last.take().unwrap_or_else(timed_out);
        if self.may_have_arrived && !error.is_retryable() { unavailable(error.to_string()) } else { error }
    }
}

fn misunderstood(why: String) -> StoreError {
    StoreError::new(ErrorKind::Misconfigured, BACKEND, format!("the node refused the request: {why}"))
}

fn not_connected(error: &DialError) -> StoreError {
    let kind = match &error.cause {
        cause if cause.is_distrust() => ErrorKind::PermissionDenied,
        DialCause::Refused(Refused::WrongVersion { .. }) => ErrorKind::Misconfigured,
        DialCause::TimedOut(_) => ErrorKind::TimedOut,
        _ => ErrorKind::Unavailable,
    };
    StoreError::new(kind, BACKEND, error.to_string())
}

#[cfg(all(test, feature = "service"))]
mod tests {
    use super::*;
    use crate::stage::Stage;

    /// It takes the whole of a short call to find out that an address is silent. The next call has to begin with another one.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn short_calls_get_past_an_address_that_accepts_and_says_nothing() {
        let stage = Stage::start().await;
        let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let silent = (silent.local_addr().expect("an address"), silent);
        let url = format!("raft://{},{}", silent.0, stage.node(0).local_address());
        let config = ClientConfig::from_url(&url).expect("a URL");
        let link = Link::new(config, bellwether_support::clock()).expect("a link");
        let limit = CONNECT_LIMIT * 3 / 4;
        assert!(link.ask(&Question::Node, limit).await.is_err(), "nobody answers there");
        let mut answered = false;
        for _ in 0..4 {
            answered |= link.ask(&Question::Node, limit).await.is_ok();
        }
        assert!(answered, "every call tried the silent address first");
    }
}
