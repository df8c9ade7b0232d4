//! What can go wrong for the one who holds an election.

use std::fmt;

use bellwether_core::{BadName, BadSettings, CandidateId, Epoch};

/// Why a call on an election did not do what was asked.
///
/// ```
/// use bellwether_election::{Election, Error};
///
/// let refused = Election::builder("reports").id("host-1").build();
/// assert!(matches!(refused, Err(Error::NoBackend)));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The settings are not safe or make no sense; nothing was started.
    Settings(BadSettings),
    /// A name cannot be used; nothing was started.
    Name(BadName),
    /// No store was given to the builder.
    NoBackend,
    /// A URL names no store of this build; the sentence says what to write.
    BadUrl(String),
    /// Not leading, so there is nothing to step down from.
    NotLeader,
    /// The named successor is already the leader.
    AlreadyLeader,
    /// Not taking part.
    NotStarted,
    /// Stepped down not long ago, and staying away.
    InCooldown,
    /// The leadership's deadline has passed.
    LeaseExpired,
    /// The record is of another leadership.
    EpochMismatch {
        /// Ours.
        ours: Epoch,
        /// Who holds it now, where the store can tell.
        holder: Option<CandidateId>,
    },
    /// The record was changed by somebody else in between; look, and try again.
    CasFailed,
    /// The call did not finish within its limit.
    TimedOut,
    /// The work of the previous start has not ended; nothing was started.
    StillWorking,
    /// The task that drives the elections is gone: its runtime was shut down. [`Election::start`](crate::Election::start) takes part again.
    DriverGone,
    /// The store failed, refused, or did not answer.
    Backend(bellwether_core::StoreError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Settings(bad) => bad.fmt(f),
            Error::Name(bad) => bad.fmt(f),
            Error::NoBackend => f.write_str("an election needs a store: give the builder a backend"),
            Error::BadUrl(sentence) => f.write_str(sentence),
            Error::NotLeader => f.write_str("not the leader"),
            Error::AlreadyLeader => {
                f.write_str("the named successor is already the leader: there is nothing to hand over")
            }
            Error::NotStarted => f.write_str("not started"),
            Error::InCooldown => f.write_str("in cooldown after stepping down"),
            Error::LeaseExpired => f.write_str("the lease has expired"),
            Error::EpochMismatch { ours, holder: Some(holder) } => {
                write!(f, "epoch {ours} is over: {holder} leads now")
            }
            Error::EpochMismatch { ours, holder: None } => write!(f, "epoch {ours} is over"),
            Error::CasFailed => {
                f.write_str("somebody else changed the record in between: look, and try again")
            }
            Error::TimedOut => f.write_str("it did not happen in time"),
            Error::StillWorking => {
                f.write_str("the work of the previous start has not ended: start again once it has")
            }
            Error::DriverGone => f.write_str(
                "the runtime that drove this election was shut down: start it again in another one",
            ),
            Error::Backend(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Settings(bad) => Some(bad),
            Error::Name(bad) => Some(bad),
            Error::Backend(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BadSettings> for Error {
    fn from(bad: BadSettings) -> Error {
        Error::Settings(bad)
    }
}

impl From<BadName> for Error {
    fn from(bad: BadName) -> Error {
        Error::Name(bad)
    }
}

impl From<bellwether_core::StoreError> for Error {
    fn from(error: bellwether_core::StoreError) -> Error {
        Error::Backend(error)
    }
}
