//! Errors by meaning.

use std::fmt;

use crate::adapter::RaftFailure;

/// What an error means to whoever started a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The node did not join a cluster within the join timeout.
    JoinTimeout,
    /// The seed, or whoever has to be asked, could not be reached.
    SeedUnavailable,
    /// The node is a member already.
    AlreadyMember,
    /// Another node leads.
    NotLeader,
    /// It is unknown whether what was asked has happened.
    Unknown,
    /// Somebody has to decide: the ledger, the disk and the flags contradict each other, or a change would be unsafe.
    Refused,
    /// A setting or an argument is not valid.
    InvalidInput,
    /// Something on disk is not what was written.
    Corrupt,
    /// The disk could not be read or written.
    Storage,
    /// The operating system does not let this node use its data directory, or a node does not trust whoever asks: a secret or a certificate
    /// is missing or wrong.
    PermissionDenied,
    /// The node has stopped.
    Stopped,
    /// The node was removed from its cluster. It may join again, with another node id, when it is started again.
    Removed,
}

/// An error of a node or its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterError {
    kind: ErrorKind,
    message: String,
}

impl ClusterError {
    /// A new error. `message` is lower case, has no full stop, and says what to do where that is known.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ClusterError {
        ClusterError { kind, message: message.into() }
    }

    /// What it means.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn invalid(message: impl Into<String>) -> ClusterError {
        ClusterError::new(ErrorKind::InvalidInput, message)
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> ClusterError {
        ClusterError::new(ErrorKind::Corrupt, message)
    }

    pub(crate) fn storage(message: impl Into<String>) -> ClusterError {
        ClusterError::new(ErrorKind::Storage, message)
    }
}

impl From<RaftFailure> for ClusterError {
    fn from(failure: RaftFailure) -> ClusterError {
        let kind = match failure {
            RaftFailure::NotLeader(_) => ErrorKind::NotLeader,
            RaftFailure::Unknown(_) => ErrorKind::Unknown,
            RaftFailure::Refused(_) => ErrorKind::Refused,
            RaftFailure::Stopped(_) => ErrorKind::Stopped,
        };
        ClusterError::new(kind, failure.to_string())
    }
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ClusterError {}
