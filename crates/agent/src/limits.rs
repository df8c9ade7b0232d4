//! Every bound, with its reason.

use std::time::Duration;

/// Connections at once, where the process may open so many descriptors: more than any fleet of dashboards, load balancers and scrapers.
const CONNECTIONS_MAX: usize = 4_096;

/// Of the descriptors that this process may open, connections take at most this part. The others are for the store: a renewal that
/// cannot open a file is a renewal that fails.
const SHARE_OF_DESCRIPTORS: usize = 2;

/// Of the connections, event streams take at most three quarters, so that load balancers and scrapers still get an answer.
pub(crate) const fn streams_max(connections_max: usize) -> usize {
    connections_max - connections_max / 4
}

/// Connections at once in this process.
pub(crate) fn connections_max() -> usize {
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let descriptors = descriptors.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    (descriptors / SHARE_OF_DESCRIPTORS).clamp(1, CONNECTIONS_MAX)
}

/// How long a client may take for the head of a request, and how long a connection may be idle between two requests. Load balancers ask
/// every few seconds and keep their connection.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// How long an encrypted connection may take to be set up.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may leave unread what was sent to it. Far longer than a round trip anywhere.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The head of a request, and what waits to be written, in bytes each. Hyper's least is half of it.
pub(crate) const BUFFER_MAX_BYTES: usize = 16 * 1024;

/// The body of a request, in bytes: one name in JSON.
pub(crate) const BODY_MAX_BYTES: usize = 4 * 1024;

/// How long a client may take to send it.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Events that wait for a slow reader; beyond it, the oldest are dropped and counted. As many as for every other subscriber.
pub(crate) const EVENTS_WAITING_MAX: usize = bellwether_election::EVENTS_WAITING_MAX;

/// The last events, kept for readers who ask what has happened so far: some 30 KB, and days of an election that is led in peace.
pub(crate) const EVENTS_KEPT: usize = 100;

/// An event stream says something this often, so that a proxy does not take it for dead.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long a request waits for the store.
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// From one read of the store to the next: at most ten in a second, whatever clients do.
pub(crate) const STORE_PAUSE: Duration = Duration::from_millis(100);

/// Of the elections that a store lists, so many are read and shown. A list is as many reads as it has elections and counts as so many, so
/// that the next waits for as many pauses: 3.3 s, of the five that anybody who asks waits.
pub(crate) const ELECTIONS_MAX: usize = 32;

/// How long a request to step down waits for the end of the leadership before it says that it was asked for. Work may take long to stop.
pub(crate) const STEP_DOWN_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the process's own runtime may take for nothing, before it counts as stuck.
pub(crate) const ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// After a connection could not be accepted, for lack of descriptors mostly.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long readers of events may hold up the end until they have read the last.
pub(crate) const LAST_EVENTS: Duration = Duration::from_secs(1);

/// How long answers that are being written hold up the end.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_millis(50);

/// Clients that campaign at once: each has to be looked at when there is a leadership to give. They count as streams, too.
pub(crate) const CAMPAIGNS_MAX: usize = 256;

/// How long a client that waits for a leadership may be away between two requests before it has to begin anew.
pub(crate) const CLIENT_RETURNS: Duration = Duration::from_secs(2);

/// How often what nobody announces is looked at, and how long to wait after what could not be done.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);
