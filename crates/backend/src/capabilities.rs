//! What a store can and cannot do, said once, where the conformance suite and people can read it.

use std::time::Duration;

/// What a store can and cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How renewals are sent.
    pub renewal: Renewal,
    /// The death of a leader's process can be proven before its ttl has passed.
    pub crash_proof: bool,
    /// Followers are told of changes; without it they find out by trying.
    pub notifies: bool,
    /// The record's epoch can be read by others.
    pub epoch_visible: bool,
    /// The record's ttl can be read by others, so candidates may differ in it.
    pub ttl_visible: bool,
    /// A leader can be asked to step down, hand over or make room.
    pub requests: bool,
    /// Past leaderships are kept.
    pub history: bool,
    /// A cooldown outlives a restart.
    pub cooldown: bool,
    /// The elections of the store can be listed.
    pub lists: bool,
    /// A leadership's ttl is rounded up to a multiple of this.
    pub ttl_unit: Duration,
}

impl Capabilities {
    /// What a register that keeps whole records and tells of changes can do; a store that differs says in what.
    pub const REGISTER: Capabilities = Capabilities {
        renewal: Renewal::PerElection,
        crash_proof: false,
        notifies: true,
        epoch_visible: true,
        ttl_visible: true,
        requests: true,
        history: true,
        cooldown: true,
        lists: true,
        ttl_unit: Duration::from_nanos(1),
    };
}

/// How renewals are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// Each election by itself: one that is slow holds nobody back.
    PerElection,
    /// All elections of the connection in one round trip.
    PerSession,
}
