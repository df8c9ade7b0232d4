//! Signals as something to read, and back to how a fresh program expects them.

use super::IgnoredSignals;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// Signals that are read from a descriptor instead of interrupting the process.
#[derive(Debug)]
pub struct SignalFd(OwnedFd);

impl SignalFd {
    /// Opens a descriptor from which these signals are read, without waiting. They have to be blocked.
    ///
    /// # Errors
    /// When the process or the system is out of descriptors.
    pub fn new(numbers: impl IntoIterator<Item = i32>) -> io::Result<SignalFd> {
        let set = set_of(numbers);
        // SAFETY: the set is read during the call only; the answer is checked before use.
        let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was opened just now and nothing else knows of it.
        Ok(SignalFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The number of the next signal that has arrived; `None` when there is none. Several of one kind may be one.
    pub fn next(&self) -> Option<i32> {
        // SAFETY: the structure is integers, for which all zeroes is a value.
        let mut info: libc::signalfd_siginfo = unsafe { mem::zeroed() };
        let size = mem::size_of_val(&info);
        // SAFETY: the kernel writes at most `size` bytes to a place valid and exclusive for that many, and any bytes
        // are a value of it.
        let read = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut info).cast(), size) };
        (usize::try_from(read) == Ok(size)).then_some(info.ssi_signo as i32)
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Blocks every signal that can be blocked, in this thread and in the children it makes from now on.
///
/// For a process that nobody but its owner and the kernel should end: SIGKILL and SIGSTOP get through all the same.
pub fn block_all_signals() {
    // SAFETY: a signal set is integers, for which all zeroes is a value; it is filled in before use.
    let mut all: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: writes one set to a place valid for it.
    unsafe { libc::sigfillset(&raw mut all) };
    set_mask(&all);
}

/// Every signal does what it does by default; what is blocked stays so.
pub fn default_signals() {
    dispose(IgnoredSignals::default());
}

/// Every signal does what it does by default, but for those to ignore, and none is blocked: what a program expects when it begins.
pub fn reset_signals(ignored: IgnoredSignals) {
    dispose(ignored);
    set_mask(&set_of([]));
}

/// Signals that this program was started to ignore, as under `nohup`, do what they do by default again: in this process, and in
/// what it starts from now on. Not SIGPIPE, which Rust's runtime ignores by itself.
///
/// For a program whose children are to be signalled, as those of tests are.
pub fn stop_ignoring_signals() {
    let ignored = IgnoredSignals::at_start();
    for number in
        (1..=libc::SIGRTMAX()).filter(|number| ignored.contains(*number) && *number != libc::SIGPIPE)
    {
        set_disposition(number, libc::SIG_DFL);
    }
}

fn dispose(ignored: IgnoredSignals) {
    for number in 1..=libc::SIGRTMAX() {
        set_disposition(number, if ignored.contains(number) { libc::SIG_IGN } else { libc::SIG_DFL });
    }
}

/// One that is no code: by default, or ignored.
pub(crate) fn set_disposition(number: i32, disposition: libc::sighandler_t) {
    assert!([libc::SIG_DFL, libc::SIG_IGN].contains(&disposition), "only dispositions without code");
    // SAFETY: the structure is integers and a nullable handler, for which all zeroes is a value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = disposition;
    // SAFETY: reads one sigaction, which is valid, and installs no code. Numbers that have no disposition to set
    // (KILL, STOP, the C library's own) are refused, which is fine.
    unsafe { libc::sigaction(number, &raw const action, ptr::null_mut()) };
}

/// Blocks these, returning what was blocked before.
pub(crate) fn block(numbers: impl IntoIterator<Item = i32>) -> libc::sigset_t {
    let set = set_of(numbers);
    let mut before = set_of([]);
    // SAFETY: reads one set and writes another, both valid for the call.
    let status = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before) };
    assert!(status == 0, "signals cannot be blocked: {}", io::Error::from_raw_os_error(status));
    before
}

pub(crate) fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: reads one set, valid for the call; the old one is not asked for.
    let status = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
    assert!(status == 0, "the signal mask cannot be set: {}", io::Error::from_raw_os_error(status));
}

fn set_of(numbers: impl IntoIterator<Item = i32>) -> libc::sigset_t {
    // SAFETY: a signal set is integers, for which all zeroes is a value; it is emptied the proper way before use.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: writes one set to a place valid for it.
    unsafe { libc::sigemptyset(&raw mut set) };
    for number in numbers {
        // SAFETY: changes one set in a place valid for it; a number that is no signal is refused and changes nothing.
        unsafe { libc::sigaddset(&raw mut set, number) };
    }
    set
}
