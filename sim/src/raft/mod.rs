//! A store of the third kind: a Raft cluster with the election service on it.
//!
//! What runs here is the real core, the real state machine and the real table of keepalives
//! ([`State`](bellwether_raft::state::State), [`Keepalives`](bellwether_raft::keepalive::Keepalives)). Consensus itself is taken to be
//! right ([`group`]): one log, whose leader changes at any time; an old leader that believes in itself for a while, and whose rounds fail; entries of
//! an old term that are committed with the next one or dropped; decisions that are proposed late. Clients ([`client`]) do what the
//! client of `raft://` does: one session for all candidates of a process, numbered commands, retries, keepalives that count from when they
//! left and renew everything in the session.
//!
//! Messages are lost, come twice and late; processes stand still, crash and are started again; clocks run at different rates.

mod client;
mod drive;
mod faults;
mod group;
mod process;
mod serve;
mod work;
mod world;

pub(crate) use world::run;
