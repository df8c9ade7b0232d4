//! What keeps a command's tree together, and which of the two can be had here.

#[cfg(target_os = "linux")]
use bellwether_deadman::process::{self, Namespace, Pid};
#[cfg(target_os = "linux")]
use rustix::process::{WaitOptions, waitpid};
use std::fmt;
#[cfg(target_os = "linux")]
use std::io;

/// What keeps the tree of a command together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containment {
    /// A PID namespace: nothing gets out, and the kernel kills all of it at once.
    Namespace,
    /// No permission to make one: descendants are found through `/proc` and killed until none is left.
    Sweep,
}

impl Containment {
    /// What users can rely on when processes of this program are killed or stopped. Where this program is process 1 of a container, the
    /// promise of [`Namespace`](Containment::Namespace) holds for both.
    pub const fn promise(self) -> &'static str {
        match self {
            Containment::Namespace => "no process of the command outlives the leadership",
            Containment::Sweep => {
                "processes that the command starts, but not the command itself, could outlive the leadership if bellwether, its \
                 guard and its init are all killed or stopped at once"
            }
        }
    }
}

impl fmt::Display for Containment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Containment::Namespace => "PID namespace",
            Containment::Sweep => "process group and sweep (no permission to make a PID namespace)",
        })
    }
}

/// Which containment a command started from here would have.
///
/// Call it early in `main`, while this process has one thread.
///
/// # Errors
/// When no process can be made at all, or this one has several threads already.
#[cfg(target_os = "linux")]
pub fn containment_here() -> io::Result<Containment> {
    // Capabilities alone do not tell: a seccomp filter or a locked `/proc` refuses what they permit. So a process is made just as the
    // guard makes an init, does what an init does first, and ends.
    let in_namespace = process::fork(Namespace::New, || i32::from(process::own_proc().is_err()));
    if let Ok(child) = in_namespace
        && ended_well(child)?
    {
        return Ok(Containment::Namespace);
    }
    // Whatever was refused, as for a guard: what is left is a process like any other.
    ended_well(process::fork(Namespace::Same, || 0)?)?;
    Ok(Containment::Sweep)
}

#[cfg(target_os = "linux")]
fn ended_well(child: Pid) -> io::Result<bool> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(status) => return Ok(status.is_some_and(|(_, status)| status.exit_status() == Some(0))),
        }
    }
}
