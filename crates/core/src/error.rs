//! Errors by meaning.

use std::fmt;
use std::sync::Arc;

/// What an error means for the one who gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store did not answer, or said to come back later.
    Unavailable,
    /// The answer did not come in time; it may still come.
    TimedOut,
    /// The store is full or over a limit; it works again when room is made.
    Exhausted,
    /// The store answers, and does not let us.
    PermissionDenied,
    /// The store is there and is not set up for elections.
    Misconfigured,
    /// What was asked for cannot be done here by anyone.
    Unsupported,
    /// What was given makes no sense.
    InvalidInput,
    /// The retry strategy said to stop trying.
    GaveUp,
    /// A mistake in Bellwether or in code it was handed.
    Bug,
}

impl ErrorKind {
    /// Every kind, for tables.
    pub const ALL: [ErrorKind; 9] = [
        ErrorKind::Unavailable,
        ErrorKind::TimedOut,
        ErrorKind::Exhausted,
        ErrorKind::PermissionDenied,
        ErrorKind::Misconfigured,
        ErrorKind::Unsupported,
        ErrorKind::InvalidInput,
        ErrorKind::GaveUp,
        ErrorKind::Bug,
    ];

    /// Whether trying the same again later can help.
    pub const fn is_retryable(self) -> bool {
        matches!(self, ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::Exhausted)
    }

    /// What it means, in a few words.
    pub const fn meaning(self) -> &'static str {
        match self {
            ErrorKind::Unavailable => "the store did not answer, or said to come back later",
            ErrorKind::TimedOut => "the answer did not come in time; it may still come",
            ErrorKind::Exhausted => "the store is full or over a limit",
            ErrorKind::PermissionDenied => "the store answers, and does not let us",
            ErrorKind::Misconfigured => "the store is there and is not set up for elections",
            ErrorKind::Unsupported => "what was asked for cannot be done here by anyone",
            ErrorKind::InvalidInput => "what was given makes no sense",
            ErrorKind::GaveUp => "the retry strategy said to stop trying",
            ErrorKind::Bug => "a mistake in Bellwether or in code it was handed",
        }
    }

    /// The word used in events, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::TimedOut => "timed_out",
            ErrorKind::Exhausted => "exhausted",
            ErrorKind::PermissionDenied => "permission_denied",
            ErrorKind::Misconfigured => "misconfigured",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::InvalidInput => "invalid_input",
            ErrorKind::GaveUp => "gave_up",
            ErrorKind::Bug => "bug",
        }
    }
}

/// Something went wrong with a store: what it means, which store, what happened, and what to do.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    backend: &'static str,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// `message` is lower case, without a full stop, and says what to do where that is known.
    pub fn new(kind: ErrorKind, backend: &'static str, message: impl Into<String>) -> Error {
        Error { kind, backend, message: message.into(), source: None }
    }

    /// The same error with what caused it.
    #[must_use]
    pub fn caused_by(self, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error { source: Some(Arc::new(source)), ..self }
    }

    /// What it means.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Which store said so.
    pub fn backend(&self) -> &'static str {
        self.backend
    }

    /// Whether trying the same again later can help.
    pub fn is_retryable(&self) -> bool {
        self.kind.is_retryable()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.backend, self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|s| s as &(dyn std::error::Error + 'static))
    }
}
