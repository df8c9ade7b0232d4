//! Moving the program out of process 1, which then only reaps, passes signals on and enforces deadlines.
//!
//! The first process of a container ignores the kernel's deadline, ignores signals that it has no handler for, and has
//! to reap every orphan. So there the program forks itself: the child is the real one, and process 1 does only what
//! process 1 must.
//!
//! ```text
//! process 1 ── signals ──▶ the program ── its children …
//!     ▲                        │
//!     └──── reaps all, ends with its exit code; the kernel then kills what is left in the container
//! ```
//!
//! It also keeps deadlines, told through shared memory ([`Pid1Deadline`]): whoever else is stopped, process 1 is not, and its end is the
//! end of everything in the container.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod deadlines;

use crate::process::Pid;
use bellwether_core::Boot;
use std::io;

/// An instant at which process 1 ends the container if anything of a command's tree still runs in it, after [`leave_pid1`] has forked.
/// Cancelled when dropped.
///
/// Every descendant of this program counts that is not spared ([`Pid1Spared`]). So this program has to adopt orphans
/// ([`adopt_orphans`](crate::process::adopt_orphans)).
#[derive(Debug)]
pub struct Pid1Deadline {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    slot: deadlines::DeadlineSlot,
}

impl Pid1Deadline {
    /// A deadline that is not set; `None` if process 1 is not this program, or has too many deadlines already.
    pub fn new() -> Option<Pid1Deadline> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return deadlines::DeadlineSlot::claim().map(|slot| Pid1Deadline { slot });
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        return None;
    }

    /// Sets it, in place of what was set before.
    pub fn set(&mut self, at: Boot) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        self.slot.set(at);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = at;
    }
}

/// A process that does not count as part of a command's tree at a [`Pid1Deadline`]. Cancelled when dropped.
#[derive(Debug)]
pub struct Pid1Spared {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    _slot: deadlines::Spared,
}

impl Pid1Spared {
    /// The process alone. `None` if process 1 is not this program, spares too many already, or the process has ended.
    pub fn alone(pid: Pid) -> Option<Pid1Spared> {
        Pid1Spared::new(pid, false)
    }

    /// The process, and all descendants of it that have not become orphans.
    pub fn with_descendants(pid: Pid) -> Option<Pid1Spared> {
        Pid1Spared::new(pid, true)
    }

    fn new(pid: Pid, with_descendants: bool) -> Option<Pid1Spared> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return deadlines::Spared::new(pid, with_descendants).map(|slot| Pid1Spared { _slot: slot });
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            let _ = (pid, with_descendants);
            None
        }
    }
}

/// In process 1, forks and returns in the child; process 1 itself never returns. Elsewhere, does nothing.
///
/// Process 1 passes on every signal that can be passed on, reaps orphans, and ends with the code of the program (128 and
/// the signal's number, if one ended it). It waits up to 10 ms for what the program left behind, such as a guard that still
/// has to put things in order.
///
/// Call it first thing in `main`, before there is a second thread.
///
/// # Errors
/// When there is no room for another process, or a second thread already.
pub fn leave_pid1() -> io::Result<()> {
    if std::process::id() != 1 {
        return Ok(());
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return linux::leave();
    // Elsewhere, process 1 belongs to the system and is never this program.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    return Ok(());
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use super::deadlines;
    use crate::boot_now;
    use crate::process::linux::{fork_here, signal_everybody, signals};
    use crate::process::{Pid, Signal, exit_code};
    use crate::stderr::{never_wait_for_stderr, say_without_waiting};
    use rustix::io::Errno;
    use rustix::process::{WaitOptions, kill_process};
    use std::io;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
    use std::time::Duration;

    /// How long the leftovers of a program that has ended may take: enough for a guard to kill a tree, and less than
    /// the 20 ms that a successor waits after a crash, since what is left here may be that tree without its guard.
    const LINGER: Duration = Duration::from_millis(10);

    /// Raised by the process's own doing, so not to be passed on: they must strike process 1 itself.
    const OWN: [i32; 7] =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGSYS];

    pub(super) fn leave() -> io::Result<()> {
        let read = || (1..=libc::SIGRTMAX()).filter(|number| !OWN.contains(number));
        let before = signals::block(read());
        let arriving = signals::SignalFd::new(read())?;
        deadlines::share()?;
        let Some(program) = fork_here()? else {
            take_terminal();
            signals::set_mask(&before);
            return Ok(());
        };
        // Ignored, children would be gone without a word about how they ended.
        signals::set_disposition(libc::SIGCHLD, libc::SIG_DFL);
        never_wait_for_stderr();
        // The code of a process has eight bits, whatever the type.
        std::process::exit(i32::from(attend(program, &arriving)));
    }

    /// In the child: a group of its own, so that what is typed reaches it once and not again by way of process 1.
    fn take_terminal() {
        use rustix::process::{getpid, setpgid};
        let before = crate::process::group();
        if setpgid(None, None).is_err() {
            return;
        }
        let terminal = io::stdin();
        if rustix::termios::tcgetpgrp(&terminal).is_ok_and(|front| Some(front) == before) {
            // SIGTTOU is still blocked, so a group in the background may do this. Without it, typing reaches nobody,
            // which is how it was without a terminal.
            let _ = rustix::termios::tcsetpgrp(&terminal, getpid());
        }
    }

    /// Process 1's whole life.
    fn attend(program: Pid, arriving: &signals::SignalFd) -> u8 {
        let mut code = None;
        let mut until = None;
        loop {
            while let Some(number) = arriving.next() {
                if number != libc::SIGCHLD
                    && let Some(signal) = Signal::from_named_raw(number)
                {
                    // Its end is noticed below.
                    let _ = kill_process(program, signal);
                }
            }
            let childless = loop {
                match rustix::process::wait(WaitOptions::NOHANG) {
                    Ok(Some((pid, status))) if pid == program => {
                        code = Some(exit_code(status.as_raw()));
                        until = Some(boot_now() + LINGER);
                    }
                    Ok(Some(_)) | Err(Errno::INTR) => {}
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            let over = until.is_some_and(|until| boot_now() >= until);
            if let Some(code) = code
                && (childless || over)
            {
                return code;
            }
            if let Some(left) = deadlines::overdue(program) {
                // First what has to be done, then the words, which nobody may read.
                signal_everybody(Signal::KILL);
                say_without_waiting(&format!(
                    "bellwether: process {left} outlived the deadline of its leadership; ending the container"
                ));
                return exit_code(libc::SIGKILL);
            }
            wait(arriving, until.map(|until| until.since(boot_now())));
        }
    }

    /// Waits for a signal, for a deadline, or for this long.
    fn wait(arriving: &signals::SignalFd, limit: Option<Duration>) {
        let millis = limit.map_or(-1, |limit| limit.as_millis() as libc::c_int + 1);
        let watched =
            |fd: BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let [timer, news] = deadlines::watched();
        let mut fds = [watched(arriving.as_fd()), watched(timer), watched(news)];
        // SAFETY: three pollfds, valid and exclusive for the call.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, millis) };
    }
}
