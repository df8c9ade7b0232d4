//! The last steps of a forked process before it becomes COMMAND.

use crate::channel;
use crate::guard_protocol::StartOrder;
use bellwether_deadman::process::{self, IgnoredSignals, Pid};
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// What is said over the reporting channel: first that it has been made, which carries its number, then nothing if it
/// became COMMAND, else why not.
pub(crate) const MADE: &[u8] = b"made";
/// The process that is to be COMMAND has been orphaned before it could be tied to its parent.
const ORPHANED: i32 = 70;

/// A program and its arguments, of which the first is its own name.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) argv: Vec<OsString>,
}

/// What COMMAND begins with.
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a Program,
    pub(crate) order: &'a StartOrder,
    pub(crate) stdin: OwnedFd,
    /// Whether it leads a process group of its own, or stays in the one that it was made in.
    pub(crate) own_group: bool,
    /// The terminal, if COMMAND is to be in its foreground.
    pub(crate) terminal: Option<BorrowedFd<'a>>,
    pub(crate) report: OwnedFd,
    /// Its parent, if it is to die with it.
    pub(crate) parent: Option<Pid>,
}

impl Launch<'_> {
    /// Becomes COMMAND. Returns the code to end with if it cannot.
    ///
    /// Every signal is blocked when this begins, and none once COMMAND runs. Descriptors that this program was started with stay open; all
    /// that it opens itself is closed on exec.
    pub(crate) fn exec(self) -> i32 {
        if self.own_group {
            // It fails for a session leader only.
            let _ = rustix::process::setpgid(None, None);
        }
        if let Some(terminal) = self.terminal {
            // SIGTTOU is blocked, so a group in the background may do this.
            let _ = rustix::termios::tcsetpgrp(terminal, rustix::process::getpid());
        }
        if let Some(parent) = self.parent {
            let tied = process::die_with_parent().is_ok();
            if !tied || rustix::process::getppid() != Some(parent) {
                return ORPHANED;
            }
        }
        // If nobody listens any more, the guard is gone and this process about to be.
        let _ = channel::send(self.report.as_fd(), MADE, &[]);
        process::reset_signals(IgnoredSignals::from_bits(self.order.ignored));
        let mut env = self.order.env.clone();
        if self.order.listens {
            // It names the process that the sockets are for, by its own numbering.
            env.push(("LISTEN_PID".to_owned(), std::process::id().to_string()));
        }
        let error = match rustix::stdio::dup2_stdin(&self.stdin) {
            Ok(()) if self.order.rehearsal => return 0,
            Ok(()) => process::exec(&self.program.path, &self.program.argv, &env),
            Err(errno) => errno.into(),
        };
        let errno = error.raw_os_error().unwrap_or(rustix::io::Errno::IO.raw_os_error());
        let _ = channel::send(self.report.as_fd(), &errno.to_ne_bytes(), &[]);
        if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
    }
}
