//! Errors of this store, by meaning.

use bellwether_core::{ErrorKind, StoreError};

use crate::answer::Refusal;

/// The name used in errors and logs.
pub(crate) const BACKEND: &str = "raft";

pub(crate) fn unavailable(sentence: impl Into<String>) -> StoreError {
    StoreError::new(ErrorKind::Unavailable, BACKEND, sentence)
}

/// An answer that does not belong to its question.
pub(crate) fn senseless() -> StoreError {
    let sentence = "the answer makes no sense: run releases that know each other on nodes and clients";
    StoreError::new(ErrorKind::Misconfigured, BACKEND, sentence)
}

/// What a refusal of the state machine means to whoever asked.
pub(crate) fn refused(refusal: &Refusal) -> StoreError {
    let kind = match refusal {
        // The client opens another session, waits for its turn, or asks again.
        Refusal::NoSuchSession | Refusal::Forgotten | Refusal::TooManyInFlight | Refusal::OtherTerm => {
            ErrorKind::Unavailable
        }
        Refusal::Limit(_) => ErrorKind::Exhausted,
        Refusal::EpochsSpent => ErrorKind::Misconfigured,
        Refusal::Malformed(_) => ErrorKind::InvalidInput,
    };
    StoreError::new(kind, BACKEND, refusal.to_string())
}
