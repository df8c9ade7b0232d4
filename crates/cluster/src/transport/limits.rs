//! Every bound of the transport, with its reason.

use std::time::Duration;

/// The longest body before the hello is done: a hello has two names of 253 bytes and some ids. A stranger can make a node hold no more
/// than this.
pub(super) const HANDSHAKE_BODY_MAX_BYTES: usize = 16 << 10;

/// The longest body after that. An engine sends its log and its snapshots in pieces that are smaller.
pub(super) const BODY_MAX_BYTES: usize = 8 << 20;

/// Requests of one connection that wait for their end, streams included. A dialler waits for a place; a listener ends a connection that
/// takes more.
pub(super) const IN_FLIGHT_MAX: usize = 256;

/// Bytes in the requests of one connection that wait for their end: four of the longest. Kept and enforced as [`IN_FLIGHT_MAX`].
pub(super) const IN_FLIGHT_MAX_BYTES: usize = 4 * BODY_MAX_BYTES;

/// Bytes in the responses of one connection that wait to be written. Those who answer wait for room.
pub(super) const QUEUED_MAX_BYTES: usize = 2 * BODY_MAX_BYTES;

/// Parts of one stream that its reader has not taken yet: enough to keep a connection busy across a round trip.
pub(super) const WINDOW_PARTS: u32 = 16;

/// The longest reason in a `Failure`: it is for people.
pub(super) const REASON_MAX_BYTES: usize = 4 << 10;

/// Connections above [`Limits::connections`] that are still told why they are refused. The rest is closed without a word.
pub(super) const REFUSED_AT_ONCE_MAX: usize = 32;

/// Addresses of one host that are tried. A name with more is a mistake, or somebody else's.
pub(super) const ADDRESSES_MAX: usize = 8;

/// The first pause after a member could not be reached: an election must not wait for it.
pub(super) const BACKOFF_FIRST: Duration = Duration::from_millis(20);

/// The longest pause. A member that comes back is found again within this.
pub(super) const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// Bounds that depend on the network and the number of clients. The defaults suit a cluster in one region.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// From an open TCP connection to the end of the hello. A peer that is slower is closed.
    pub handshake: Duration,
    /// For one address to accept a TCP connection. Shorter than `dial`, so that a second address gets its turn.
    pub connect: Duration,
    /// For a whole dial: the lookup of the host, all its addresses, and the handshakes.
    pub dial: Duration,
    /// A side that has sent nothing for this long sends a ping.
    pub ping: Duration,
    /// A side that has received nothing for this long, or could write nothing, closes the connection. Four pings, so that one that is late
    /// does no harm.
    pub silence: Duration,
    /// Connections that a listener holds. A thousand cost some tens of megabytes.
    pub connections: usize,
    /// Connections of clients among them. The rest is for nodes and operators: clients cannot keep a cluster from electing its leader.
    pub client_connections: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            handshake: Duration::from_secs(5),
            connect: Duration::from_secs(2),
            dial: Duration::from_secs(10),
            ping: Duration::from_secs(5),
            silence: Duration::from_secs(20),
            connections: 1_024,
            client_connections: 896,
        }
    }
}
