//! A session store, as PostgreSQL is one: a lock belongs to a session, and the server ends sessions that fall silent.
//!
//! What runs here is the real core and the real [`SessionLease`](bellwether_backend::SessionLease), on a store whose statements
//! ([`store`]) go over connections that keep their order, stall, go dead or break ([`wire`], `network`), to a server with its own
//! clock ([`server`]) that crashes, is replaced by a promoted standby, and has sessions ended by hand.

pub mod backend;
mod effects;
pub mod line;
pub mod network;
pub mod server;
pub mod store;
pub mod wire;
