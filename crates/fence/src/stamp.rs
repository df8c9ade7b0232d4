//! Who wrote a value: which election's leader, under which epoch.

use std::fmt;

use bellwether_core::{ElectionName, Epoch};

/// What every fenced value carries: the election, and the epoch under which its leader wrote.
///
/// Epochs of different elections say nothing about each other, so the election is part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The election whose leader wrote.
    pub election: ElectionName,
    /// The epoch of that leader.
    pub epoch: Epoch,
}

impl Stamp {
    /// That of a leader: `Stamp::new(leadership.election(), leadership.epoch())`.
    pub fn new(election: impl Into<ElectionName>, epoch: Epoch) -> Stamp {
        Stamp { election: election.into(), epoch }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {} of \"{}\"", self.epoch, self.election)
    }
}

/// What a resource holds: a value, and who wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value<T> {
    /// Who wrote it; `None` where nobody has, or somebody did without an epoch.
    pub stamp: Option<Stamp>,
    /// The value; `None` where there is none, or a leader removed it.
    pub content: Option<T>,
}
