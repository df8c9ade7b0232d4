//! Making processes, and tying their lives together.
//!
//! Everything here is for a process with one thread, which [`fork`] checks: a forked child has only the thread that
//! forked, and a lock that another thread held would stay locked in it for ever.
//!
//! Leaves to the caller what the processes do.

pub use rustix::process::{Pid, Signal};

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) mod linux;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use linux::{
    IgnoredSignals, ProcStat, SignalFd, adopt_orphans, block_all_signals, came_from_kernel, default_signals,
    die_with_parent, exec, fork, group, is_gone, note_origin, own_proc, reset_signals, set_name,
    signal_everybody, stop_ignoring_signals, thread_count,
};

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

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub use unsupported::{adopt_orphans, die_with_parent, set_name};

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod unsupported {
    use std::ffi::CStr;
    /// Not on this system.
    ///
    /// # Errors
    /// Always.
    pub fn die_with_parent() -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system does not kill a process with its parent"))
    }

    /// Not on this system.
    ///
    /// # Errors
    /// Always.
    pub fn adopt_orphans() -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system gives orphans to process 1 only"))
    }

    /// Does nothing: only people read the name.
    pub fn set_name(_name: &CStr) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
