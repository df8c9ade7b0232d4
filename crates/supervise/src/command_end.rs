//! How a command ended, and why.

use bellwether_election::Over;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a command ended; its tree is gone, unless `why` says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandEnd {
    /// What the command itself ended with.
    pub exit: ExitStatus,
    /// What brought it about.
    pub why: EndCause,
}

/// What a process ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// Its own exit code.
    Code(u8),
    /// The signal of this number.
    Signal(u8),
}

impl ExitStatus {
    /// One number for both, as shells have it: 128 and the signal's.
    pub fn code(self) -> u8 {
        match self {
            ExitStatus::Code(code) => code,
            ExitStatus::Signal(number) => 128u8.saturating_add(number),
        }
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn from_wait(status: i32) -> ExitStatus {
        let number = (status & 0x7f) as u8;
        if number == 0 { ExitStatus::Code((status >> 8) as u8) } else { ExitStatus::Signal(number) }
    }

    #[cfg(target_os = "linux")]
    pub(crate) const KILLED: ExitStatus = ExitStatus::Signal(9);
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitStatus::Code(code) => write!(f, "exit code {code}"),
            ExitStatus::Signal(number) => write!(f, "signal {number}"),
        }
    }
}

/// What ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// It did so by itself, while the leadership held: nobody had told it to stop.
    ByItself,
    /// It was asked to, through [`Child`](crate::Child).
    Asked,
    /// Its leadership was over.
    Over(Over),
    /// No renewal reached the guard in time, so it stopped the command, whatever this process believed: the leadership must
    /// be let go if it still stands.
    Overdue,
    /// The guard was killed, and the tree with it.
    GuardDied,
    /// It was to be killed, and this process of its tree cannot be: it has gained rights that this program does not have, or is frozen. It has been
    /// waited for until the deadline and still runs. Nothing is released before it has ended; the leadership runs out.
    Unkillable(Survivor),
}

/// A process that was not to be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// Its process id.
    pub pid: u32,
    /// The user whom it belongs to.
    pub uid: u32,
}

#[cfg(target_os = "linux")]
impl Survivor {
    /// Whether anybody is left could not be found out, and in doubt somebody is.
    pub(crate) const UNKNOWN: Survivor = Survivor { pid: 0, uid: 0 };
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            0 => f.write_str("a process that could not be looked up"),
            pid => write!(f, "process {pid} of user {}", self.uid),
        }
    }
}
