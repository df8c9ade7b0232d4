//! What a store can and cannot do: stated once, for the driver, the conformance suite and people.

use std::time::Duration;

/// What a store can and cannot do.
///
/// A store starts from [`REGISTER`](Capabilities::REGISTER) or [`SESSION`](Capabilities::SESSION) and states where it differs:
///
/// ```
/// # use bellwether_backend::Capabilities;
/// let can = Capabilities::REGISTER.with(|can| can.lists = false);
/// assert!(can.history && !can.lists);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Grants belong to a session, and one heartbeat renews all grants of a connection. Neither a claim nor a heartbeat changes
    /// anything that followers are told of. Without it, each grant is renewed by a write of its own.
    pub session_bound: bool,
    /// The death of a leader's process can be proven before its ttl has passed.
    pub crash_proof: bool,
    /// After a crash the record of the dead leader is still there, so that a candidate which never saw it alive knows of the crash.
    pub crash_leaves_record: bool,
    /// Followers are told of changes; without it they find out by trying.
    pub notifies: bool,
    /// The record's epoch can be read by others.
    pub epoch_visible: bool,
    /// The record's ttl can be read by others, so candidates may differ in it.
    pub ttl_visible: bool,
    /// The leader's metadata and priority can be read by others.
    pub metadata_visible: bool,
    /// After somebody removed a record, the store still knows its epoch, even one far above the store's own counter because a
    /// candidate's [`floor`](bellwether_core::Bid::floor) demanded it.
    pub floor_outlives_record: bool,
    /// A leader can be asked to step down, hand over or make room.
    pub requests: bool,
    /// An election can be paused: [`Backend::pause`](crate::Backend::pause).
    pub pauses: bool,
    /// Past leaderships are kept.
    pub history: bool,
    /// A cooldown outlives a restart.
    pub cooldown: bool,
    /// The elections of the store can be listed.
    pub lists: bool,
    /// Notes that are created once and then stay: [`Backend::create_once`](crate::Backend::create_once).
    pub create_once: bool,
    /// A leadership's ttl is rounded up to a multiple of this.
    pub ttl_unit: Duration,
}

impl Capabilities {
    /// A register that keeps whole records and tells of changes.
    pub const REGISTER: Capabilities = Capabilities {
        session_bound: false,
        crash_proof: false,
        crash_leaves_record: true,
        notifies: true,
        epoch_visible: true,
        ttl_visible: true,
        metadata_visible: true,
        floor_outlives_record: true,
        requests: true,
        pauses: true,
        history: true,
        cooldown: true,
        lists: true,
        create_once: false,
        ttl_unit: Duration::from_nanos(1),
    };

    /// Locks that belong to sessions, and nothing else.
    pub const SESSION: Capabilities = Capabilities {
        session_bound: true,
        crash_proof: true,
        crash_leaves_record: false,
        epoch_visible: false,
        ttl_visible: false,
        metadata_visible: false,
        requests: false,
        pauses: false,
        history: false,
        cooldown: false,
        lists: false,
        ..Capabilities::REGISTER
    };

    /// These capabilities with a change.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Capabilities)) -> Capabilities {
        change(&mut self);
        self
    }
}
