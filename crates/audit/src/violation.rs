//! What must never happen.

use std::fmt;
use std::time::Duration;

use bellwether_core::duration;

use crate::{Leadership, Owner};

/// A broken promise, with the leaderships that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Two candidates led at once.
    Overlap {
        /// The one that began earlier.
        first: Leadership,
        /// The later one.
        second: Leadership,
        /// For how long, at least.
        span: Duration,
    },
    /// A later leadership has no greater epoch.
    EpochFell {
        /// The earlier leadership.
        before: Leadership,
        /// The later one.
        after: Leadership,
    },
    /// Two candidates led under one epoch.
    TwoOwners {
        /// One of them.
        first: Leadership,
        /// The other.
        second: Leadership,
    },
    /// A candidate began to lead while it led.
    BegunTwice {
        /// The leadership that had not ended.
        first: Leadership,
        /// The one that began.
        second: Leadership,
    },
    /// A candidate ended a leadership that it did not have.
    EndedUnbegun {
        /// The election.
        election: String,
        /// Who.
        owner: Owner,
        /// The epoch that ended.
        epoch: u64,
    },
}

impl Violation {
    /// Its kind in a word, for machines.
    pub fn kind(&self) -> &'static str {
        match self {
            Violation::Overlap { .. } => "overlap",
            Violation::EpochFell { .. } => "epoch_fell",
            Violation::TwoOwners { .. } => "two_owners",
            Violation::BegunTwice { .. } => "begun_twice",
            Violation::EndedUnbegun { .. } => "ended_unbegun",
        }
    }

    /// The election in which it happened.
    pub fn election(&self) -> &str {
        match self {
            Violation::Overlap { first, .. }
            | Violation::TwoOwners { first, .. }
            | Violation::BegunTwice { first, .. } => &first.election,
            Violation::EpochFell { before, .. } => &before.election,
            Violation::EndedUnbegun { election, .. } => election,
        }
    }
}

/// A leadership in a sentence: `a (epoch 7)`.
pub(crate) fn named(led: &Leadership) -> String {
    match led.epoch {
        Some(epoch) => format!("{} (epoch {epoch})", led.owner.id),
        None => led.owner.id.clone(),
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.election())?;
        match self {
            Violation::Overlap { first, second, span } => write!(
                f,
                "{} and {} led at once for {}, from {} s after boot",
                named(first),
                named(second),
                duration::print(*span),
                second.from.as_nanos() as f64 / 1e9
            ),
            Violation::EpochFell { before, after } => {
                write!(f, "{} followed {}: epochs have to rise", named(after), named(before))
            }
            Violation::TwoOwners { first, second } => write!(
                f,
                "{} and {} both led under one epoch, as incarnations {} and {}",
                named(first),
                named(second),
                first.owner.incarnation,
                second.owner.incarnation
            ),
            Violation::BegunTwice { first, second } => {
                write!(f, "{} began while {} had not ended", named(second), named(first))
            }
            Violation::EndedUnbegun { owner, epoch, .. } => {
                write!(f, "{} ended epoch {epoch}, which it had not begun", owner.id)
            }
        }
    }
}
