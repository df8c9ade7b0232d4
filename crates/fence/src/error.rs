//! How a fenced write ends when it is not simply done: three ways, which nobody may confuse.

use std::fmt;

use bellwether_core::{ElectionName, Epoch, StoreError};

/// A later epoch has written. The answer is final: an epoch that was refused is refused for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fenced {
    /// The epoch that was refused.
    pub mine: Epoch,
    /// The latest epoch that has written.
    pub latest: Epoch,
}

impl fmt::Display for Fenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {} is fenced: epoch {} has written; stop this leader's work", self.mine, self.latest)
    }
}

impl std::error::Error for Fenced {}

/// Why a write is not done, or not certainly.
///
/// Deliberately exhaustive: treating one of these as another is how a stale write gets through, or a good one gets lost.
#[derive(Clone, Debug)]
pub enum FenceError {
    /// Certainly not written, now or later.
    Fenced(Fenced),
    /// Perhaps written, perhaps not, perhaps later, but never after a later epoch has written. The same write may be tried again.
    Unknown(StoreError),
    /// Certainly not written, for a reason that has nothing to do with epochs.
    Failed(Failure),
}

/// Why a write failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The value belongs to another election.
    OtherElection {
        /// The election of the writer.
        mine: ElectionName,
        /// The election whose leader wrote the value.
        theirs: ElectionName,
    },
    /// There is a value that somebody wrote without an epoch.
    Unstamped,
    /// What stands in the place of the epoch cannot be read.
    Unreadable(String),
    /// The store did not take the write.
    Store(StoreError),
}

impl FenceError {
    /// Both epochs, where a later one has written.
    pub fn fenced(&self) -> Option<Fenced> {
        match self {
            FenceError::Fenced(fenced) => Some(*fenced),
            FenceError::Unknown(_) | FenceError::Failed(_) => None,
        }
    }

    /// Whether trying the same write again later can help.
    pub fn is_retryable(&self) -> bool {
        match self {
            FenceError::Fenced(_) => false,
            FenceError::Unknown(_) => true,
            FenceError::Failed(Failure::Store(error)) => error.is_retryable(),
            FenceError::Failed(_) => false,
        }
    }
}

impl fmt::Display for FenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FenceError::Fenced(fenced) => fenced.fmt(f),
            FenceError::Unknown(error) => write!(f, "perhaps written, perhaps not: {error}"),
            FenceError::Failed(failure) => failure.fmt(f),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::OtherElection { mine, theirs } => write!(
                f,
                "not written: the value belongs to the election \"{theirs}\", and the writer to \"{mine}\"; give each election a \
                 resource of its own"
            ),
            Failure::Unstamped => f.write_str(
                "not written: the value was written without an epoch, so nothing tells whether a later epoch wrote it; adopt it \
                 once nobody else writes it",
            ),
            Failure::Unreadable(what) => {
                write!(f, "not written: the epoch of the value cannot be read ({what}); repair or remove it by hand")
            }
            Failure::Store(error) => write!(f, "not written: {error}"),
        }
    }
}

impl std::error::Error for FenceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FenceError::Fenced(_) => None,
            FenceError::Unknown(error) | FenceError::Failed(Failure::Store(error)) => Some(error),
            FenceError::Failed(_) => None,
        }
    }
}

impl From<Fenced> for FenceError {
    fn from(fenced: Fenced) -> FenceError {
        FenceError::Fenced(fenced)
    }
}

impl From<Failure> for FenceError {
    fn from(failure: Failure) -> FenceError {
        FenceError::Failed(failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::ErrorKind;

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let epoch = |number| Epoch::new(number).unwrap();
        let store = |kind| StoreError::new(kind, "file", "no");
        for (error, again) in [
            (FenceError::Fenced(Fenced { mine: epoch(3), latest: epoch(4) }), false),
            (FenceError::Unknown(store(ErrorKind::TimedOut)), true),
            (Failure::Store(store(ErrorKind::Exhausted)).into(), true),
            (Failure::Store(store(ErrorKind::PermissionDenied)).into(), false),
            (Failure::Unstamped.into(), false),
            (Failure::Unreadable("x".to_owned()).into(), false),
        ] {
            assert_eq!(error.is_retryable(), again, "{error}");
        }
    }

    #[test]
    fn an_error_names_both_epochs_and_both_elections() {
        let epoch = |number| Epoch::new(number).unwrap();
        let fenced = FenceError::from(Fenced { mine: epoch(3), latest: epoch(4) });
        assert!(fenced.to_string().contains("epoch 3 is fenced: epoch 4 has written"), "{fenced}");
        assert_eq!(fenced.fenced().map(|fenced| fenced.latest), Some(epoch(4)));
        let name = |text: &str| ElectionName::new(text).unwrap();
        let other = Failure::OtherElection { mine: name("a"), theirs: name("b") };
        assert!(other.to_string().contains("election \"b\", and the writer to \"a\""), "{other}");
    }
}
