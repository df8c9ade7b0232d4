//! Connections between nodes, and from clients to nodes.
//!
//! Owns sockets, frames, authentication and the exchange of who is who. What the messages mean is left to the [`Host`] that answers them
//! and to whoever calls: both see bytes.
//!
//! ```text
//! dialler                                      listener
//!    │  (TLS, with certificates)                  │
//!    │ Hello: version, purpose, cluster, who ───▶ │
//!    │ ◀─── Challenge          (with a secret)    │
//!    │ Proof ───────────────▶  (with a secret)    │
//!    │ ◀─── Proof              (with a secret)    │
//!    │ ◀─────────────────── Welcome, or Refused   │  Host::greet
//!    │ Request, Subscribe, Cancel, Credit ──────▶ │  Host::serve, Host::stream
//!    │ ◀───────────────── Part, Answer, Failure   │
//!    │ ◀──── Ping, when there is nothing else ──▶ │
//! ```
//!
//! A frame is its length (`u32`), its kind (`u8`), the id of its request (`u64`), a body, and with a secret a MAC of 32 bytes. Numbers are
//! big-endian; the length counts what follows it. A response is any number of `Part`s and one `Answer` or `Failure`. Many requests are in
//! flight on one connection, and are answered in any order.
//!
//! Every mistake in a frame ends its connection, and nothing else. A dialler learns from the error whether its request certainly did not
//! leave ([`CallError::NotSent`]) or may have arrived ([`CallError::Unknown`]).

mod connection;
mod dialler;
mod error;
mod frame;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod handshake;
mod hello;
mod host;
mod limits;
mod links;
mod listener;
mod lookup;
mod secret;
mod security;
mod serving;
mod table;
#[cfg(feature = "tls")]
mod tls;

pub use connection::{Connection, PartStream};
pub use dialler::Dialler;
pub use error::{CallError, DialCause, DialError};
pub use hello::{Hello, Intended, Purpose, Refused, Welcome};
pub use host::{Gone, Host, PartSender};
pub use limits::Limits;
pub use links::Links;
pub use listener::Listener;
pub use lookup::{HostLookup, SystemLookup};
pub use secret::Secret;
pub use security::Security;
