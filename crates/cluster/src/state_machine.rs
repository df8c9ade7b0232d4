//! What users run on a cluster.

use std::fmt;

/// A deterministic state machine. Every node applies the same commands in the same order, so every node has the same state.
///
/// It lives in memory. After a restart the engine restores it from the last snapshot and applies what came after that.
pub trait StateMachine: Send + 'static {
    /// Applies a command, and returns the answer for whoever proposed it. The result depends on the state, the place and the command alone:
    /// no clock, no randomness, no I/O, no iteration over an unordered map.
    fn apply(&mut self, at: At, command: &[u8]) -> Vec<u8>;

    /// The whole state as bytes: equal states give equal bytes.
    fn snapshot(&self) -> Vec<u8>;

    /// Replaces the state by that of a snapshot.
    ///
    /// # Errors
    /// When the bytes are not a snapshot of this state machine. The node stops then.
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), CorruptSnapshot>;
}

/// The place of a command in the history of its cluster: the same on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Its log index.
    pub index: u64,
    /// The term of the leader that appended it.
    pub term: u64,
    /// How often the cluster had been recovered by hand by then. What a recovery lost may have had the same indexes and terms.
    pub generation: u32,
}

/// Bytes that are not a snapshot of the state machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorruptSnapshot(pub String);

impl fmt::Display for CorruptSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the snapshot cannot be restored: {}", self.0)
    }
}

impl std::error::Error for CorruptSnapshot {}
