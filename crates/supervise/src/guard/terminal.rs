//! The terminal, lent to COMMAND.

use bellwether_deadman::process::Pid;
use rustix::fs::{Mode, OFlags};
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A terminal that COMMAND gets the foreground of, and that is given back when it has ended.
pub(super) struct Terminal {
    terminal: OwnedFd,
    owner: Pid,
}

impl Terminal {
    /// Lent only if the supervisor's group has it and nobody else in that group is likely to need it: in a pipeline,
    /// where the output goes to another program (`| less`), that one may want the keyboard. COMMAND then stays in the
    /// supervisor's group.
    pub(super) fn lend(stdin: &OwnedFd, owner: Option<Pid>) -> Option<Terminal> {
        let owner = owner?;
        let in_front = tcgetpgrp(stdin).is_ok_and(|group| group == owner);
        (in_front && isatty(io::stdout())).then_some(())?;
        Some(Terminal { terminal: stdin.try_clone().ok()?, owner })
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.terminal.as_fd()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // SIGTTOU is blocked in a guard, so its group in the background may do this. If the supervisor's group is gone,
        // so is its shell's interest, or the shell takes the terminal back by itself.
        let _ = tcsetpgrp(&self.terminal, self.owner);
    }
}

/// Whether there is a terminal that a process in the background could be stopped by.
///
/// Where there is none, as under cron, systemd or CI, COMMAND gets a group of its own. In the supervisor's group, its parent would be in
/// another group of the session, and when such a parent ends, the supervisor's group can become orphaned. If a process of it is stopped
/// then, the kernel sends SIGHUP to the whole group, and so to the script that started `bellwether`.
pub(super) fn controls_session() -> bool {
    rustix::fs::open("/dev/tty", OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).is_ok()
}
