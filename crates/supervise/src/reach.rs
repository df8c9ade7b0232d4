//! Which containment a command could have here, found out by trying.
//!
//! Capabilities alone do not tell: a seccomp filter or a locked `/proc` refuses what they permit. So a process is made just
//! as the guard makes an init, does what an init does first, and ends.

use crate::Containment;
use bellwether_deadman::process::{self, Namespace, Pid};
use rustix::process::{WaitOptions, waitpid};
use std::io;

/// Which containment a command started from here would have.
///
/// To be called while this process has one thread, which is to say early in `main`.
///
/// # Errors
/// When no process can be made at all, or this one has several threads already.
pub fn containment_here() -> io::Result<Containment> {
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

fn ended_well(child: Pid) -> io::Result<bool> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(status) => return Ok(status.is_some_and(|(_, status)| status.exit_status() == Some(0))),
        }
    }
}
