//! A deterministic simulator: the real election and the real lease, in worlds where everything goes wrong.
//!
//! What runs here is [`Core`](bellwether_core::Core) and [`Lease`](bellwether_backend::Lease), unchanged, for several
//! candidates in one election; in one world of three the store is one of sessions instead ([`session`]), and in
//! two of fifteen a Raft cluster (`raft`). In some worlds processes take part in several elections, or in one by two candidates, and
//! share their connection and what it keeps alive between them ([`options`]). What is simulated is everything around them: clocks ([`clock`]), the network and the
//! store ([`connection`], [`store`]), pauses, crashes and people ([`faults`]). One thread, one queue of events
//! ([`queue`]), virtual time, and one number, the seed, from which everything follows ([`options`]).
//!
//! A run has two phases. For ten virtual minutes and more things go wrong, and nothing may ever break the
//! [`invariants`]. Then faults stop, and a leader has to appear within the bound that the settings promise, stay,
//! and be replaced within its bound when it is killed.
//!
//! A checker that never caught anything proves nothing: `cargo xtask sim --bugs` puts known mistakes in, one at a time.

pub mod call;
pub mod campaign;
pub mod candidate;
pub mod clock;
mod commits;
pub mod connection;
mod drive;
mod election;
mod expect;
pub mod faults;
mod heal;
pub mod invariants;
pub mod key;
mod lives;
mod network;
pub mod node;
pub mod options;
pub mod profile;
pub mod queue;
mod raft;
pub mod session;
pub mod store;
pub mod tally;
pub mod time;
pub mod trace;
mod wakes;
mod work;
mod world;

use options::StoreKind;
pub use options::WorldOptions;
use tally::WorldCounts;
pub use world::RunResult;

/// Runs the world of one seed.
pub fn run(seed: u64, verbose: bool) -> RunResult {
    run_world(WorldOptions::of(seed), verbose)
}

/// Runs this world.
pub fn run_world(options: WorldOptions, verbose: bool) -> RunResult {
    let (worlds, elections) = (WorldCounts::of(&options), options.elections as u128);
    let mut outcome = match options.store {
        StoreKind::Raft => raft::run(options, verbose),
        StoreKind::Register | StoreKind::Session => world::World::new(options, verbose).run(),
    };
    outcome.tally.worlds = worlds;
    outcome.tally.election_time = elections * outcome.tally.virtual_time;
    outcome
}
