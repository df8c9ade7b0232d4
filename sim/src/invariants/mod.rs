//! What must hold, one file each. Every file is pure: it is told what happened and says what is wrong with it.

pub mod alternation;
pub mod clones;
pub mod conflict;
pub mod cooldown;
pub mod epochs;
pub mod exclusion;
pub mod grants;
pub mod health;
pub mod order;
pub mod owners;
pub mod pauses;
pub mod quiet;
pub mod read_only;
pub mod recovery;
pub mod requests;
pub mod reservations;
pub mod stale;

use std::fmt;

use crate::time::{Nanos, SECOND};

/// What an invariant says: nothing, or what is wrong.
pub type Verdict = Result<(), BrokenInvariant>;

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenInvariant {
    /// The invariant that found it.
    pub invariant: &'static str,
    /// What it found.
    pub said: String,
}

impl BrokenInvariant {
    /// A finding.
    pub fn new(invariant: &'static str, said: impl Into<String>) -> BrokenInvariant {
        BrokenInvariant { invariant, said: said.into() }
    }
}

/// A finding, and when in the world it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What was found.
    pub finding: BrokenInvariant,
    /// When, in true time.
    pub at: Nanos,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BrokenInvariant { invariant, said } = &self.finding;
        write!(f, "{invariant} at {:.6}s: {said}", self.at as f64 / SECOND as f64)
    }
}
