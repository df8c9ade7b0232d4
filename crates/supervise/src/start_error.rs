//! Why a command was not started.

use crate::NotRunnable;
use bellwether_election::Over;
use std::{fmt, io};

/// Why a command was not started. Nothing of it runs.
#[derive(Debug)]
pub enum StartError {
    /// The leadership ended first.
    Over(Over),
    /// The command cannot be run.
    NotRunnable(NotRunnable),
    /// The address that was to be held cannot be held, for this reason.
    Address(String),
    /// The guard could not be started, or failed.
    Guard(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Over(over) => write!(f, "not started: {over}"),
            StartError::NotRunnable(why) => why.fmt(f),
            StartError::Address(why) => write!(f, "the address cannot be held: {why}"),
            StartError::Guard(error) => write!(f, "the guard process failed: {}", advised(error)),
        }
    }
}

/// An error of making a process, a thread or a file descriptor, followed by what to do about it if that is known.
pub fn advised(error: &io::Error) -> String {
    use rustix::io::Errno;
    let advice = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE) => "raise the limit on open files (ulimit -n)",
        Some(Errno::AGAIN) => "raise the limit on processes (ulimit -u, or pids.max of the control group)",
        _ => return error.to_string(),
    };
    format!("{error}; {advice}")
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Over(over) => Some(over),
            StartError::NotRunnable(_) | StartError::Address(_) => None,
            StartError::Guard(error) => Some(error),
        }
    }
}
