//! Leader election on NATS JetStream, by compare-and-set on a key-value bucket.
//!
//! ```text
//!                    ┌─ connection: one client, the bound on every call ─┐
//!  Lease ─ register ─┤                                                   ├─ bucket_api ─ servers, 2.9 and later
//!                    ├─ bucket: settings, read, write at a revision ─────┤
//!                    ├─ notes: past leaderships, cooldowns ──────────────┤
//!             keys ──┤  (values of the program's own, beside elections) ─┤
//!                    └─ changes ─ watch: one consumer for all elections ─┘
//!        layout: what a profile decides (native, cluster, leader), names of keys and the record
//! ```
//!
//! What holds, and why:
//!
//! - **A record is replaced only at the revision that was read**, by the server's own check. So a write that the client sends late, after a
//!   reconnect, harms nobody.
//! - **The careful read** asks the stream's leader. No decision rests on what a replica has;
//!   a release that the watch has just told of needs no read, since the claim names its revision.
//! - **No server clock and no server-side expiry**: followers time the lease themselves, on every version alike.
//! - **Unknown is unknown**: a write without an answer, or while the stream has no leader, is neither held nor denied.
//! - **Epochs** follow the record's, or where there is none, the stream's creation time and sequence (`epoch.rs`).
//! - **Followers send nothing** while nothing changes.
//!
//! Leaves to others: expiry, claims and renewals ([`Lease`](bellwether_backend::Lease)), belief and deadlines
//! (`bellwether-core`). How durable all this is, is up to the stream: see GUARANTEES.md.

mod bucket;
mod bucket_api;
mod changes;
mod checkup;
mod config;
mod connecting;
mod connection;
mod epoch;
mod errors;
mod fitness;
mod following;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod health;
mod key_message;
mod keys;
mod layout;
mod names;
mod notes;
mod profile;
mod register;
mod reroute;
mod watch;

pub use config::Config;
pub use health::{HealthChecker, Response};
pub use keys::{Keys, StoredKey};
pub use profile::Profile;
pub use register::{Nats, NatsRegister, from_url};
pub use reroute::through;
