//! The driver's errors, by meaning. Told apart by SQLSTATE, never by text. The server's own words go with them.

use std::error::Error as _;
use std::{fmt, io};

use bellwether_core::{ErrorKind, StoreError};
use tokio_postgres::error::SqlState;

use crate::schema::NOT_OURS_ALONE;

pub(crate) const BACKEND: &str = "postgres";

/// What to do about a pooler.
pub(crate) const POOLED: &str = "a pooler lends its connections by the transaction or the statement, so locks there belong to \
     nobody: connect to the server itself, or to a pool in session mode";

/// What the driver reports, with the server's own words: the driver itself says only "db error".
#[derive(Debug)]
pub(crate) struct Cause(String);

impl Cause {
    pub(crate) fn of(error: &tokio_postgres::Error) -> Cause {
        if let Some(said) = error.as_db_error() {
            return Cause(format!("{} (SQLSTATE {})", said.message(), said.code().code()));
        }
        let deeper = std::iter::successors(error.source(), |error| (*error).source());
        let said: Vec<String> = deeper.map(ToString::to_string).collect();
        Cause(std::iter::once(error.to_string()).chain(said).collect::<Vec<_>>().join(": "))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Cause {}

pub(crate) fn misconfigured(sentence: impl Into<String>) -> StoreError {
    StoreError::new(ErrorKind::Misconfigured, BACKEND, sentence)
}

pub(crate) fn unavailable(sentence: impl Into<String>) -> StoreError {
    StoreError::new(ErrorKind::Unavailable, BACKEND, sentence)
}

/// What the driver reports.
pub(crate) fn meaning(error: tokio_postgres::Error) -> StoreError {
    let Some(code) = error.code() else {
        // Answers to other questions than were asked: the driver gives no cause for these alone.
        if !error.is_closed() && error.source().is_none() {
            return misconfigured(POOLED).caused_by(Cause::of(&error));
        }
        return unavailable("the connection failed").caused_by(Cause::of(&error));
    };
    if let Some(said) = error.as_db_error().filter(|said| said.code().code() == NOT_OURS_ALONE) {
        let sentence = said.message().to_owned();
        return StoreError::new(ErrorKind::PermissionDenied, BACKEND, sentence).caused_by(error);
    }
    let (kind, sentence) = match *code {
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => (
            ErrorKind::PermissionDenied,
            "the server does not let this user in: check user, password and pg_hba.conf",
        ),
        SqlState::INSUFFICIENT_PRIVILEGE => (
            ErrorKind::PermissionDenied,
            "the role lacks a right: it needs CONNECT, the default rights of PUBLIC (`bellwether doctor` says which is missing), and \
             for tables what `bellwether postgres init --grant ROLE` gives",
        ),
        SqlState::INVALID_CATALOG_NAME => {
            (ErrorKind::Misconfigured, "there is no such database: create it, or name another in the URL")
        }
        SqlState::UNDEFINED_TABLE | SqlState::INVALID_SCHEMA_NAME => (
            ErrorKind::Misconfigured,
            "the tables that the URL names by schema= are not there: run `bellwether postgres init`",
        ),
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE => (
            ErrorKind::Misconfigured,
            "the tables are of another version of Bellwether: use that version, or another schema",
        ),
        SqlState::TOO_MANY_CONNECTIONS => (
            ErrorKind::Exhausted,
            "the server takes no more connections: raise max_connections or the role's limit",
        ),
        SqlState::OUT_OF_MEMORY => {
            (ErrorKind::Exhausted, "the server's lock table is full: raise max_locks_per_transaction")
        }
        // Each session prepares its statements once, under names of its own: they are missing, or there already, only
        // where a pooler lends one session to several. That transactions are not allowed is what it says itself.
        SqlState::INVALID_SQL_STATEMENT_NAME
        | SqlState::DUPLICATE_PSTATEMENT
        | SqlState::PROTOCOL_VIOLATION => (ErrorKind::Misconfigured, POOLED),
        SqlState::READ_ONLY_SQL_TRANSACTION => {
            (ErrorKind::Misconfigured, "the session is read-only: name the primary in the URL")
        }
        _ => (ErrorKind::Unavailable, "the server reports an error"),
    };
    StoreError::new(kind, BACKEND, sentence).caused_by(Cause::of(&error))
}

/// What the driver reports when logging in failed and the server sent no error: it asked for what there is not.
pub(crate) fn not_logged_in(error: tokio_postgres::Error, has_password: bool) -> StoreError {
    let Some(source) = error.source().filter(|source| !source.is::<io::Error>()) else {
        return unavailable("the connection failed").caused_by(Cause::of(&error));
    };
    let sentence = if has_password {
        "the server asks for a way to log in that this program does not have: let it use SCRAM, MD5 or a certificate in pg_hba.conf"
    } else {
        "the server asks for a password and none is known: set PGPASSWORD, or write it into ~/.pgpass or into the URL"
    };
    StoreError::new(ErrorKind::PermissionDenied, BACKEND, sentence).caused_by(Cause(source.to_string()))
}
