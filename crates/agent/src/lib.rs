//! One candidate over HTTP: status, health, metrics, events, and a request to step down. Or a node of a cluster: health and metrics.
//!
//! ```text
//!  the process's runtime                      │ thread `http`: a runtime of its own, of lower priority
//!                                             │
//!  driver ──events, once──▶ feed ─────────────┼──▶ event streams, each with its own place in one queue
//!    │ deadline: an atomic word ◀─────────────┼─── /leader /status /metrics: read what is there
//!    ▼                                        │
//!  Backend ◀── at most one read at a time ◀───┼─── /status /history: ask, and share the answer
//! ```
//!
//! **No client can delay a renewal.** Requests are parsed, encrypted, answered and written in a thread of its own, which the scheduler
//! prefers last. What crosses to the process's own runtime does not grow with the number of clients: one subscription to events, and one read
//! of the store at a time, whose answer everybody gets who asked for it (`store_reads.rs`). What both sides share are atomic words, and
//! the status of the election, which is locked for as long as it takes to copy it.
//!
//! **Everything has a bound** (`limits.rs`): connections (and so descriptors, of which the store needs some too), event streams, headers,
//! bodies, the time that a client may take to send a request or to read an answer, and the events that wait for it.
//!
//! **Reading is free, changing is not.** Whoever can connect may read; what changes something needs the token, and does not work without
//! one. Nothing here writes to the store but a request to step down.
//!
//! **Clients may do the work** (`campaign`): with the token, or on a Unix socket, whose file says who may write to it.

mod accept;
mod address;
mod campaign;
mod dashboard;
mod endpoints;
mod error;
mod feed;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod limits;
mod listener;
mod node_endpoints;
mod patient;
mod peer;
mod store_reads;
mod thread;
mod tls;
mod token;
mod unix_socket;

pub use address::Address;
pub use campaign::{ClientGate, Clients, KeptProof, ProofKeeper};
pub use error::AgentError;
pub use listener::Listener;
pub use node_endpoints::NodeReport;
pub use thread::{Agent, Served};
pub use tls::TlsFiles;
pub use token::Token;
