//! Elections on real clusters: nodes in this process with the Raft engine and its storage, on loopback, and clients of them.
//!
//! One program, because its stories spend their time waiting and can do so together.

mod expiry;
mod failover;
mod handover;
mod restart;
mod retries;
mod stage;
