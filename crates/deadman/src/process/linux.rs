//! Linux: fork, namespaces, parent-death signal, subreaper, exec.

mod ignored_signals;
mod proc_stat;
mod signal_origin;
pub(crate) mod signals;

pub use ignored_signals::IgnoredSignals;
pub use proc_stat::{ProcStat, is_gone};
pub use signal_origin::{came_from_kernel, note_origin};
pub use signals::{SignalFd, block_all_signals, default_signals, reset_signals, stop_ignoring_signals};

use super::{Namespace, Pid, Signal};
use rustix::mount::{MountFlags, MountPropagationFlags};
use std::convert::Infallible;
use std::ffi::{CStr, CString, OsString, c_char};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::{io, process, ptr};

/// What a forked child ends with when its code panicked.
const PANICKED: i32 = 70;

/// Makes a child that runs `child` and ends with the code that it returns; it never comes back into the caller's code.
///
/// The child has copies of everything: every open descriptor, every value, none of which is dropped in it. It has no
/// timers and no pending signals, and the caller's signal mask.
///
/// # Errors
/// When this process has more than one thread, when the namespace is not permitted
/// ([`PermissionDenied`](io::ErrorKind::PermissionDenied)), or when the system has no room for another process.
pub fn fork(into: Namespace, child: impl FnOnce() -> i32) -> io::Result<Pid> {
    let forked = match into {
        Namespace::Same => fork_here(),
        Namespace::New => fork_into_new_namespace(),
    };
    if let Ok(None) = forked {
        // A panic must not unwind into the copy of the caller's stack.
        let code = catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED);
        // SAFETY: ends this process at once. Nothing of it is left that could be unsound, and the parent's exit
        // handlers and buffers are the parent's.
        unsafe { libc::_exit(code) }
    }
    forked.map(|pid| pid.expect("the child has ended above"))
}

/// Only the child is in the new namespace, so no way back is needed: the alternative, `unshare` and later `setns`, is not permitted in a
/// user namespace within the host's PID namespace, and would leave this process unable to make ordinary children.
///
/// `None` in the child.
fn fork_into_new_namespace() -> io::Result<Option<Pid>> {
    only_one_thread()?;
    let flags = libc::c_long::from(libc::CLONE_NEWPID | libc::SIGCHLD);
    // This one architecture has stack and flags the other way round.
    let (first, second) = if cfg!(target_arch = "s390x") { (0, flags) } else { (flags, 0) };
    let none: libc::c_long = 0;
    // SAFETY: a fork, since no stack is given and no memory is shared. There is one thread, this one, so no lock is held by another.
    // The C library has no call for it and so misses the child's thread id, which it uses for locks between processes only.
    match unsafe { libc::syscall(libc::SYS_clone, first, second, none, none, none) } {
        ..0 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid as i32)),
    }
}

/// `None` in the child.
pub(crate) fn fork_here() -> io::Result<Option<Pid>> {
    only_one_thread()?;
    // SAFETY: there is one thread, this one, so no lock is held by another and the child's memory is as consistent as
    // ours. No signal handler of ours runs in between: there is none in this crate, and Rust's own does not fork.
    match unsafe { libc::fork() } {
        ..0 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

fn only_one_thread() -> io::Result<()> {
    match thread_count()? {
        1 => Ok(()),
        threads => {
            let sentence =
                format!("only a process with one thread can fork safely, and this one has {threads}");
            Err(io::Error::other(sentence))
        }
    }
}

/// Becomes another program: this file, with these arguments, and with this environment besides the one there is.
///
/// Never by way of a shell, which is what the C library's other ways do with a file that is no program. Every signal
/// that this process ignores or blocks stays so: see [`reset_signals`](super::reset_signals). Descriptors stay open that are not to be
/// closed on exec.
///
/// Returns only if it could not.
pub fn exec(program: &Path, argv: &[OsString], env: &[(String, String)]) -> io::Error {
    match exec_or(program, argv, env) {
        Err(error) => error,
        Ok(never) => match never {},
    }
}

fn exec_or(program: &Path, argv: &[OsString], env: &[(String, String)]) -> io::Result<Infallible> {
    let threads = thread_count()?;
    if threads != 1 {
        return Err(io::Error::other("only a process with one thread can change its environment safely"));
    }
    let program = CString::new(program.as_os_str().as_bytes())?;
    let argv: Vec<CString> = argv.iter().map(|arg| CString::new(arg.as_bytes())).collect::<Result<_, _>>()?;
    let argv: Vec<*const c_char> = argv.iter().map(|arg| arg.as_ptr()).chain([ptr::null()]).collect();
    for (name, value) in env {
        // SAFETY: there is one thread, this one, so nobody reads the environment meanwhile.
        unsafe { std::env::set_var(name, value) };
    }
    // SAFETY: a string and two lists of strings that end in null, all of which live through the call; the environment is
    // the C library's own, and nobody changes it meanwhile.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), environ.cast()) };
    Err(io::Error::last_os_error())
}

unsafe extern "C" {
    /// The C library's list of variables.
    static environ: *const *const c_char;
}

/// This process's group; `None` if it was made outside this PID namespace, where it has no number.
pub fn group() -> Option<Pid> {
    // SAFETY: takes no pointers and cannot fail.
    Pid::from_raw(unsafe { libc::getpgrp() })
}

/// How many threads this process has.
///
/// # Errors
/// Without `/proc`.
pub fn thread_count() -> io::Result<usize> {
    Ok(fs::read_dir("/proc/self/task")?.count())
}

/// The kernel kills this process when the *thread* that made it ends, or its process.
///
/// Lost when this process executes a program with more rights than it has. If the parent has ended already nothing
/// happens: look, afterwards, whether it is still there.
///
/// # Errors
/// Never, on a kernel that is not broken.
pub fn die_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Orphans among this process's descendants become its children, and it has to reap them.
///
/// # Errors
/// Never, on a kernel that is not broken.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// What `ps` and `top` call this process; at most 15 bytes of it.
pub fn set_name(name: &CStr) {
    // For people only: nothing depends on it.
    let _ = rustix::thread::set_name(name);
}

/// Gives the first process of a new PID namespace a `/proc` that shows that namespace, in a mount namespace of its own.
///
/// Mounts made outside still appear inside; those made inside do not appear outside.
///
/// # Errors
/// When mounting is not permitted.
pub fn own_proc() -> io::Result<()> {
    assert!(process::id() == 1, "only the first process of a PID namespace gets a /proc of its own");
    // SAFETY: takes no pointers and separates mounts only; no descriptor and no memory changes hands.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", slave)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(rustix::mount::mount("proc", "/proc", "proc", flags, None)?)
}

/// Sends a signal to every process that this one may signal, except itself and the first of its PID namespace.
///
/// # Panics
/// In any process but the first of a PID namespace: elsewhere it would reach everything that the user runs.
pub fn signal_everybody(signal: Signal) {
    assert!(process::id() == 1, "only the first process of a PID namespace may signal everybody in it");
    // SAFETY: takes no pointers. Having nobody to signal is the only failure, and it is fine.
    unsafe { libc::kill(-1, signal.as_raw()) };
}
