//! How it went.

use crate::NotRunnable;
use bellwether_election::Over;
use serde::{Deserialize, Serialize};
use std::{fmt, io};

/// What keeps the tree of a command together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containment {
    /// A PID namespace: nothing gets out, and the kernel kills all of it at once.
    Namespace,
    /// Not permitted to make one: descendants are found through `/proc` and killed until there is none.
    Sweep,
}

impl Containment {
    /// What users can rely on, whoever is killed or stopped; where process 1 of a container is this program, too, the first holds for both.
    pub const fn promise(self) -> &'static str {
        match self {
            Containment::Namespace => "no process of the command outlives the leadership",
            Containment::Sweep => {
                "processes that the command starts, but not the command itself, could outlive the leadership if bellwether, its \
                 guard and its init are killed or stopped all three at once"
            }
        }
    }
}

impl fmt::Display for Containment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Containment::Namespace => "PID namespace",
            Containment::Sweep => "process group and sweep (no right to make a PID namespace)",
        })
    }
}

/// How a command ended; its tree is gone, unless `why` says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What the command itself ended with.
    pub exit: Exit,
    /// What brought it about.
    pub why: Why,
}

/// What a process ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Its own exit code.
    Code(u8),
    /// The signal of this number.
    Signal(u8),
}

impl Exit {
    /// One number for both, as shells have it: 128 and the signal's.
    pub fn code(self) -> u8 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(number) => 128u8.saturating_add(number),
        }
    }

    #[cfg(target_os = "linux")]
    pub(crate) const KILLED: Exit = Exit::Signal(9);
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(number) => write!(f, "signal {number}"),
        }
    }
}

/// What ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
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

/// Why a command was not started. Nothing runs.
#[derive(Debug)]
pub enum StartError {
    /// The leadership was over before it could be.
    Over(Over),
    /// The command cannot be run.
    NotRunnable(NotRunnable),
    /// The guard could not be started, or did not do its part.
    Guard(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Over(over) => write!(f, "not started: {over}"),
            StartError::NotRunnable(why) => why.fmt(f),
            StartError::Guard(error) => write!(f, "the guard process failed: {}", advised(error)),
        }
    }
}

/// An error of making a process, a thread or a descriptor, and what to do about it where that is known.
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
            StartError::NotRunnable(_) => None,
            StartError::Guard(error) => Some(error),
        }
    }
}
