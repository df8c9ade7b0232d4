//! Errors by meaning.

use std::fmt;
use std::sync::Arc;

use crate::words::words;

words! {
    /// What an error means to the caller.
    #[non_exhaustive]
    ErrorKind {
        Unavailable = "unavailable": "the store did not answer, or asked to be tried again later",
        TimedOut = "timed_out": "the answer did not arrive in time; it may still arrive",
        Exhausted = "exhausted": "the store is full or over a limit",
        PermissionDenied = "permission_denied": "the store denies permission",
        Misconfigured = "misconfigured": "the store is not set up for elections",
        Unsupported = "unsupported": "this store cannot do what was asked",
        InvalidInput = "invalid_input": "an argument is not valid",
        GaveUp = "gave_up": "the retry strategy gave up",
        Bug = "bug": "a mistake in Bellwether or in code passed to it",
    }
}

impl ErrorKind {
    /// Whether trying the same again later can help. A store that is exhausted works again when there is space.
    pub const fn is_retryable(self) -> bool {
        matches!(self, ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::Exhausted)
    }
}

/// An error of a store: its kind, which store, what happened, and what to do.
#[derive(Clone)]
pub struct StoreError {
    kind: ErrorKind,
    backend: &'static str,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    /// A new error. `message` is lower case, has no full stop, and says what to do where that is known.
    pub fn new(kind: ErrorKind, backend: &'static str, message: impl Into<String>) -> StoreError {
        StoreError { kind, backend, message: message.into(), source: None }
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(self, source: impl std::error::Error + Send + Sync + 'static) -> StoreError {
        StoreError { source: Some(Arc::new(source)), ..self }
    }

    /// What it means.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The name of the store.
    pub fn backend(&self) -> &'static str {
        self.backend
    }

    /// Whether trying the same again later can help.
    pub fn is_retryable(&self) -> bool {
        self.kind.is_retryable()
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.backend, self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.kind)
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|s| s as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn an_error_says_which_store_what_happened_and_why() {
        let error = StoreError::new(ErrorKind::TimedOut, "file", "no answer");
        assert_eq!((error.kind(), error.backend()), (ErrorKind::TimedOut, "file"));
        assert_eq!(
            (error.to_string(), format!("{error:?}")),
            ("file: no answer".into(), "TimedOut(file: no answer)".into())
        );
        assert!(error.source().is_none());
        let caused = error.caused_by(std::io::Error::other("the disk is gone"));
        assert_eq!(caused.to_string(), "file: no answer: the disk is gone");
        assert_eq!(caused.source().unwrap().to_string(), "the disk is gone");
    }

    #[test]
    fn only_errors_that_pass_by_themselves_are_tried_again() {
        let again: Vec<&str> =
            ErrorKind::ALL.iter().filter(|kind| kind.is_retryable()).map(|kind| kind.as_str()).collect();
        assert_eq!(again, ["unavailable", "timed_out", "exhausted"]);
        assert!(StoreError::new(ErrorKind::Exhausted, "file", "").is_retryable());
        assert!(!StoreError::new(ErrorKind::GaveUp, "file", "").is_retryable());
    }

    #[test]
    fn every_kind_has_a_word_and_a_meaning_of_its_own() {
        use std::collections::BTreeSet;
        let words: BTreeSet<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
        let meanings: BTreeSet<_> = ErrorKind::ALL.iter().map(|kind| kind.meaning()).collect();
        assert_eq!((words.len(), meanings.len()), (ErrorKind::ALL.len(), ErrorKind::ALL.len()));
        assert!(words.iter().chain(&meanings).all(|text| text.len() > 2));
    }
}
