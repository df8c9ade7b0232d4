//! Leader election on a Raft cluster of Bellwether's own nodes.
//!
//! ```text
//!  clients ── command ──▶ log ──▶ state: sessions, elections, history, notes ── answer ──▶ clients
//!                          ▲        │ changes
//!                          └── keepalive: the Raft leader's clock (expiry, reservations, cooldowns)
//! ```
//!
//! - [`command`] and [`answer`]: what stands in the log, and what comes back.
//! - [`state`]: the state machine. No clock, no I/O, no randomness; the same on every node.
//! - [`keepalive`]: which sessions are alive, in the Raft leader's memory. Pure too: time is an argument. Its module text is the safety
//!   argument of this backend.
//! - [`limits`]: every bound, with its reason.
//! - [`Raft`]: the client, which implements the contract of all stores ([`from_url`]).
//! - `ElectionService`: the half that runs in the nodes (feature `service`). It needs no Raft engine of its own: a node brings one.

pub mod answer;
mod client;
pub mod command;
mod errors;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
pub mod keepalive;
pub mod limits;
mod protocol;
#[cfg(feature = "service")]
mod service;
pub mod state;
mod wire;

/// For the stage, which the tests outside share.
#[cfg(all(test, feature = "service"))]
extern crate self as bellwether_raft;
#[cfg(all(test, feature = "service"))]
#[path = "../tests/elections/stage.rs"]
#[expect(dead_code, reason = "the tests outside use the rest")]
mod stage;

pub use client::{Raft, from_url, places, through};
#[cfg(feature = "service")]
pub use service::ElectionService;
