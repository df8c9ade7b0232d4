//! Making processes, and tying their lives together.
//!
//! Everything here is for a process with one thread, which [`fork`] checks: a forked child has only the thread that
//! forked, and a lock that another thread held would stay locked in it for ever.
//!
//! Leaves to the caller what the processes do.

use std::io;

pub use rustix::process::{Pid, Signal};

#[cfg(any(target_os = "linux", target_os = "android"))]
mod at_start;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) mod linux;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod origin;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) mod signals;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use at_start::Ignored;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use linux::{
    adopt_orphans, die_with_parent, exec, fork, group, own_proc, set_name, signal_everybody, thread_count,
};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use origin::{came_from_kernel, note_origin};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use signals::{Signals, block_all_signals, default_signals, reset_signals, stop_ignoring_signals};

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub use other::{adopt_orphans, die_with_parent, set_name};

/// In which PID namespace a child begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// The one of its parent.
    Same,
    /// A new one, of which it is the first process: when it ends, the kernel kills all others in it, however they were
    /// made and whatever they did to get away, and only then does it count as ended. Needs CAP_SYS_ADMIN.
    New,
}

/// The shell's way of saying how a process ended in one number: its exit code, or 128 and the signal.
pub fn exit_code(status: i32) -> u8 {
    if libc::WIFSIGNALED(status) {
        128u8.saturating_add(libc::WTERMSIG(status) as u8)
    } else {
        libc::WEXITSTATUS(status) as u8
    }
}

#[cfg_attr(any(target_os = "linux", target_os = "android"), allow(dead_code))]
fn unsupported<T>(sentence: &'static str) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, sentence))
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
