//! Leader election on PostgreSQL's advisory locks, with a lease that the server enforces.
//!
//! No table, no schema, no extension is needed; any role that may connect can take part. PostgreSQL 14 or later.
//!
//! ```text
//!             ┌── A: the election's lock, heartbeat, release ──┐      idle_session_timeout = ttl on A and B:
//!  a process ─┤                                                ├─ PostgreSQL   silence frees both, the server's
//!             ├── B: the leader's presence, LISTEN, looks ─────┤               clock decides
//!             └── C: parked on the leader's session key ───────┘      C only while following somebody
//! ```
//!
//! What holds, and why:
//!
//! - **Who has the lock on A may try; who also has presence on B leads.** A renewal counts only when both sessions
//!   answered, from the instant before either was asked. So a session that ends by its idle time-out ends after belief in
//!   it did.
//! - **A freed lock proves only that A ended.** Its taker leads at once only if nobody's presence is left and the server
//!   has neither been restarted nor promoted within the ttl. Else it keeps the lock, is
//!   [denied](bellwether_core::Outcome::Denied) with the instant at which the ttl is over, and leads then, or when the
//!   presence goes.
//! - **A release drops presence and lock at once**, since the work is over, and notifies followers in the same statement.
//! - **Epochs** are `timeline << 40 | xid`, the transaction id assigned after the lock was granted and made durable by a
//!   logical message.
//! - **A leader's epoch shows as a lock** of one number on A. By it a request names the leadership that it is meant for.
//! - **With tables** (`schema=NAME` in the URL) a leadership is believed only when its row is written, on a session D, so that a
//!   user's transaction which has checked the epoch there is over before anybody else leads.
//! - **Nothing parks on an election's lock.** C parks on a key of the leader's *session*, a second at a time.
//! - **A broken connection is not left to its lease**: the next one ends the half-open session, by number and start.
//!
//! What is asked in which order, and what the answers mean, is [`SessionLease`](bellwether_backend::SessionLease)'s, which the simulator
//! drives too; here are the statements, the tables and the connections. Leaves to others: belief and deadlines (`bellwether-core`), timers and work (`bellwether-election`). What can break the
//! promise is in GUARANTEES.md.

#[cfg(feature = "tls")]
mod binding;
mod checkup;
mod config;
mod connection;
mod environment;
mod epoch;
mod errors;
mod followers;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod hosts;
mod keys;
mod names;
mod notices;
mod once;
mod open;
mod options;
mod passfile;
mod pooler;
mod presence_sql;
mod record_sql;
mod records;
mod reroute;
mod schema;
mod session;
mod sql;
mod store;
mod tables;
mod terminate;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;
mod transport;
#[cfg(feature = "tls")]
mod verifier;
mod watch;

pub use config::Config;
pub use environment::Environment;
pub use keys::Keys;
pub use reroute::through;
pub use schema::{DEFAULT_SCHEMA, FENCED, Schema};
pub use session::PgSession;
pub use store::{PgStore, Postgres, from_config, from_env, from_url};
pub use tables::init;
pub use transport::Transport;
