//! What a store finds out about itself when somebody asks whether elections on it will go well.
//!
//! A [`Finding`] is for people: what was looked at, how it is, and a sentence that says what to do about it. Nothing in an
//! election depends on one. What is bad says by its [`ErrorKind`] what a candidate would meet, so that a command can
//! end with the same code that `run` would.

use bellwether_core::{ElectionName, ErrorKind, StoreError};

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What, in a word or two.
    pub what: &'static str,
    /// How it is.
    pub grade: Grade,
    /// In a sentence, with what to do where something is to be done.
    pub sentence: String,
}

/// How good or bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// As it should be.
    Good,
    /// Elections are safe, and something is worse than it could be.
    Warning,
    /// No election can be held like this; the kind is that of the error that a candidate would get.
    Bad(ErrorKind),
}

/// The [`Finding::what`] of a finding about the permissions for elections: the store's word on them counts.
pub const PERMISSIONS: &str = "permissions";

/// How far a checkup may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Probing<'a> {
    /// Only read: the store is unchanged afterwards.
    Look,
    /// As `Look`, for a candidate of this election, which may be the only one that this user has rights for.
    LookAt(&'a ElectionName),
    /// Write too, and remove what was written.
    Write,
}

/// What discarding an election left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Discarded {
    /// Nothing of it is left.
    Gone,
    /// This is left; the store cannot, or should not, remove it.
    Remains(String),
}

impl Finding {
    /// As it should be.
    pub fn good(what: &'static str, sentence: impl Into<String>) -> Finding {
        Finding { what, grade: Grade::Good, sentence: sentence.into() }
    }

    /// Worse than it could be.
    pub fn warning(what: &'static str, sentence: impl Into<String>) -> Finding {
        Finding { what, grade: Grade::Warning, sentence: sentence.into() }
    }

    /// Prevents every election, as this error says.
    pub fn failed(what: &'static str, error: &StoreError) -> Finding {
        Finding::bad(what, error.kind(), error.to_string())
    }

    /// Prevents every election.
    pub fn bad(what: &'static str, kind: ErrorKind, sentence: impl Into<String>) -> Finding {
        Finding { what, grade: Grade::Bad(kind), sentence: sentence.into() }
    }
}

impl Grade {
    /// The word for machines.
    pub const fn as_str(self) -> &'static str {
        match self {
            Grade::Good => "good",
            Grade::Warning => "warning",
            Grade::Bad(_) => "bad",
        }
    }
}
