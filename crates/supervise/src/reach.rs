//! Which containment a command could have here, found out by trying.
//!
//! Capabilities alone do not tell: a seccomp filter or a locked `/proc` refuses what they permit. So a process is made just
//! as the guard makes an init, does what an init does first, and ends.

use crate::Containment;
use bellwether_deadman::process::{self, Namespace};
use rustix::process::{WaitOptions, waitpid};
use std::io;

/// Which containment a command started from here would have.
///
/// To be called while this process has one thread, which is to say early in `main`.
///
/// # Errors
/// When no process can be made at all, or this one has several threads already.
pub fn containment_here() -> io::Result<Containment> {
    let child = match process::fork(Namespace::New, || i32::from(process::own_proc().is_err())) {
        Ok(child) => child,
        Err(error) if process::thread_count()? == 1 && error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(Containment::Sweep);
        }
        Err(error) => return Err(error),
    };
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(status) => {
                let ready = status.is_some_and(|(_, status)| status.exit_status() == Some(0));
                return Ok(if ready { Containment::Namespace } else { Containment::Sweep });
            }
        }
    }
}
