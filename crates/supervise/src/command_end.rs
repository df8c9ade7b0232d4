//! How a command ended, and why.

use bellwether_election::Over;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a command ended. Its tree is gone, unless `why` is [`EndCause::Unkillable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandEnd {
    /// What the command itself ended with.
    pub exit: ExitStatus,
    /// What caused the end.
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
    /// One number for both, as in shells: 128 + the signal's number.
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
    /// It ended by itself while the leadership held: nothing had told it to stop.
    ByItself,
    /// The caller asked it to stop, through [`Child`](crate::Child).
    Asked,
    /// Its leadership ended.
    Over(Over),
    /// No renewal reached the guard in time, so it stopped the command, even if this process still leads. Step down then.
    Overdue,
    /// The guard was killed, and the tree with it.
    GuardDied,
    /// This process of its tree cannot be killed: it has gained rights that this program does not have, or is frozen. It still ran at the
    /// deadline. The leadership is not released before it has ended, and runs out meanwhile.
    Unkillable(Survivor),
}

/// A process that could not be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// Its process id.
    pub pid: u32,
    /// The user whom it belongs to.
    pub uid: u32,
}

#[cfg(target_os = "linux")]
impl Survivor {
    /// Nobody could find out whether a process is left, so one is assumed.
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
