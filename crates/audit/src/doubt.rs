//! What the lines cannot tell.

use std::fmt;

use crate::violation::named;
use crate::{Leadership, Owner};

/// Something that keeps a verdict from being clean, though it need not be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// No line tells the end of a leadership, nor of its renewals, and another began after its first deadline.
    UnknownAfter {
        /// The leadership.
        first: Leadership,
        /// The other.
        second: Leadership,
    },
    /// No line tells the end of a leadership, and another began before its deadline. If the first candidate was killed before, all is well.
    KilledOrBeside {
        /// The leadership without an end.
        first: Leadership,
        /// The other.
        second: Leadership,
    },
    /// Lines of a candidate are missing.
    Missing {
        /// The election.
        election: String,
        /// The candidate.
        owner: Owner,
    },
}

impl Doubt {
    /// Its kind in a word, for machines.
    pub fn kind(&self) -> &'static str {
        match self {
            Doubt::UnknownAfter { .. } => "unknown_after",
            Doubt::KilledOrBeside { .. } => "killed_or_beside",
            Doubt::Missing { .. } => "missing",
        }
    }

    /// The election that it is about.
    pub fn election(&self) -> &str {
        match self {
            Doubt::UnknownAfter { first, .. } | Doubt::KilledOrBeside { first, .. } => &first.election,
            Doubt::Missing { election, .. } => election,
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.election())?;
        match self {
            Doubt::UnknownAfter { first, second } => write!(
                f,
                "{}: unknown after its first deadline, and {} followed; record renewals (--events-renewals) to know",
                named(first),
                named(second)
            ),
            Doubt::KilledOrBeside { first, second } => write!(
                f,
                "the lines of {} stop without an end, and {} began before its deadline: was it killed before that?",
                named(first),
                named(second)
            ),
            Doubt::Missing { owner, .. } => {
                write!(f, "lines of {} are missing: its reader was too slow", owner.id)
            }
        }
    }
}
