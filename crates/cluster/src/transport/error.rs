//! Errors of dialling and calling, by what a caller can do about them.

use std::fmt;
use std::time::Duration;

use super::hello::Refused;

/// A connection could not be made. Nothing was sent on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialError {
    /// The address that was dialled.
    pub address: String,
    /// Why.
    pub cause: DialCause,
}

/// Why a connection could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DialCause {
    /// The host has no address now.
    Unresolved(String),
    /// Nobody accepted a connection.
    Unreachable(String),
    /// One side does not trust the other, or does not prove itself: certificates, the secret, or an address that is not loopback.
    Untrusted(String),
    /// The listener does not want this connection.
    Refused(Refused),
    /// The connection failed before the hello was done, or the peer speaks another protocol.
    Failed(String),
    /// It took too long.
    TimedOut(Duration),
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot connect to {}: {}", self.address, self.cause)
    }
}

impl std::error::Error for DialError {}

impl DialCause {
    /// Whether one side does not accept who the other one is, which trying again does not change.
    pub fn is_distrust(&self) -> bool {
        matches!(self, DialCause::Untrusted(_) | DialCause::Refused(Refused::NotAuthenticated))
    }
}

impl fmt::Display for DialCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DialCause::Unresolved(why) => write!(f, "the host cannot be resolved: {why}"),
            DialCause::Unreachable(why) | DialCause::Untrusted(why) | DialCause::Failed(why) => {
                f.write_str(why)
            }
            DialCause::Refused(refused) => write!(f, "{refused}"),
            DialCause::TimedOut(limit) => write!(f, "no connection within {limit:?}"),
        }
    }
}

/// A call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum CallError {
    /// The request certainly did not leave. It can be sent again, here or elsewhere.
    NotSent(String),
    /// The node did not let this side in. The request did not leave, and will not by trying again.
    Refused(Refused),
    /// The request may have arrived, and may have been carried out.
    Unknown(String),
    /// The node answered with this error. What it means is up to the request.
    Failed(String),
}

impl CallError {
    /// Whether the request certainly did not leave.
    pub fn is_certainly_not_sent(&self) -> bool {
        matches!(self, CallError::NotSent(_) | CallError::Refused(_))
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::NotSent(why) => write!(f, "the request was not sent: {why}"),
            CallError::Refused(refused) => write!(f, "the request was not sent: {refused}"),
            CallError::Unknown(why) => write!(f, "it is unknown whether the request arrived: {why}"),
            CallError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for CallError {}

impl From<DialError> for CallError {
    fn from(error: DialError) -> CallError {
        match error.cause {
            DialCause::Refused(refused) => CallError::Refused(refused),
            _ => CallError::NotSent(error.to_string()),
        }
    }
}
