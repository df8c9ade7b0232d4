//! A session store, as PostgreSQL is one: a lock belongs to a session, and the server ends sessions that fall silent.
//!
//! What runs here is the real core and the real judgement ([`Taken`](bellwether_backend::Taken),
//! [`Heartbeat`](bellwether_backend::Heartbeat)). Around them is a backend of two sessions a process ([`backend`],
//! [`tend`]), which asks in the order in which the PostgreSQL backend does, over connections that keep their order,
//! stall, go dead or break ([`wire`], `network`), and a server with its own clock ([`server`]) that crashes, is
//! replaced by a promoted standby, and has sessions ended by hand.

pub mod backend;
mod claim;
mod hold;
pub mod network;
pub mod server;
pub mod tend;
pub mod wire;
