//! A deterministic simulator: the real election and the real lease, in worlds where everything goes wrong.
//!
//! What runs here is [`Core`](bellwether_core::Core) and [`Lease`](bellwether_backend::Lease), unchanged, for several
//! candidates in one election; in one world of three the store is one of sessions instead ([`session`]), and in
//! two of fifteen a Raft cluster (`raft`). What is simulated is everything around them: clocks ([`clock`]), the network and the
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
pub mod clock;
pub mod connection;
mod drive;
mod expect;
pub mod faults;
mod heal;
pub mod invariants;
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
mod world;

pub use options::WorldOptions;
pub use world::RunResult;

/// Runs the world of one seed.
pub fn run(seed: u64, verbose: bool) -> RunResult {
    run_world(WorldOptions::of(seed), verbose)
}

/// Runs this world.
pub fn run_world(options: WorldOptions, verbose: bool) -> RunResult {
    match options.store {
        options::StoreKind::Raft => raft::run(options, verbose),
        options::StoreKind::Register | options::StoreKind::Session => {
            world::World::new(options, verbose).run()
        }
    }
}
