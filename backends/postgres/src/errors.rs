//! The driver's errors, by meaning. Told apart by SQLSTATE, never by text.

use bellwether_core::{Error, ErrorKind, Outcome};
use tokio_postgres::error::SqlState;

pub(crate) const BACKEND: &str = "postgres";

/// What to do about a pooler.
pub(crate) const POOLED: &str = "a pooler lends its connections by the transaction or the statement, so locks there belong to \
     nobody: connect to the server itself, or to a pool in session mode";

/// How a statement failed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The server said no, and the session lives on.
    Said(Error),
    /// The session is over, or was thrown away because its answer is lost.
    Over(Error),
}

impl Failure {
    pub(crate) fn error(self) -> Error {
        match self {
            Failure::Said(error) | Failure::Over(error) => error,
        }
    }
}

/// An error that says nothing about whether it happened; permanent ones certainly did not.
pub(crate) fn outcome<T>(error: Error) -> Outcome<T> {
    if error.is_retryable() { Outcome::Unknown(error) } else { Outcome::Refused(error) }
}

pub(crate) fn misconfigured(sentence: impl Into<String>) -> Error {
    Error::new(ErrorKind::Misconfigured, BACKEND, sentence)
}

pub(crate) fn unavailable(sentence: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unavailable, BACKEND, sentence)
}

/// What the driver reports.
pub(crate) fn meaning(error: tokio_postgres::Error) -> Error {
    let Some(code) = error.code() else {
        // Answers to other questions than were asked: the driver gives no cause for these alone.
        if !error.is_closed() && std::error::Error::source(&error).is_none() {
            return misconfigured(POOLED).caused_by(error);
        }
        return unavailable("the connection failed").caused_by(error);
    };
    let (kind, sentence) = match code {
        code if *code == SqlState::INVALID_PASSWORD
            || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
        {
            (
                ErrorKind::PermissionDenied,
                "the server does not let this user in: check user, password and pg_hba.conf",
            )
        }
        code if *code == SqlState::INSUFFICIENT_PRIVILEGE => (
            ErrorKind::PermissionDenied,
            "the role lacks a right: it needs CONNECT, the default rights of PUBLIC (`bellwether doctor` says which is missing), and \
             for tables what `bellwether postgres init --grant ROLE` gives",
        ),
        code if *code == SqlState::INVALID_CATALOG_NAME => {
            (ErrorKind::Misconfigured, "there is no such database: create it, or name another in the URL")
        }
        code if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::INVALID_SCHEMA_NAME => (
            ErrorKind::Misconfigured,
            "the tables that the URL names by schema= are not there: run `bellwether postgres init`",
        ),
        code if *code == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE => (
            ErrorKind::Misconfigured,
            "the tables are of another version of Bellwether: use that version, or another schema",
        ),
        code if *code == SqlState::TOO_MANY_CONNECTIONS => (
            ErrorKind::Exhausted,
            "the server takes no more connections: raise max_connections or the role's limit",
        ),
        code if *code == SqlState::OUT_OF_MEMORY => {
            (ErrorKind::Exhausted, "the server's lock table is full: raise max_locks_per_transaction")
        }
        // Each session prepares its statements once, under names of its own: they are missing, or there already, only
        // where a pooler lends one session to several. That transactions are not allowed is what it says itself.
        code if *code == SqlState::INVALID_SQL_STATEMENT_NAME
            || *code == SqlState::DUPLICATE_PSTATEMENT
            || *code == SqlState::PROTOCOL_VIOLATION =>
        {
            (ErrorKind::Misconfigured, POOLED)
        }
        code if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            (ErrorKind::Misconfigured, "the session is read-only: name the primary in the URL")
        }
        _ => (ErrorKind::Unavailable, "the server reports an error"),
    };
    Error::new(kind, BACKEND, sentence).caused_by(error)
}
