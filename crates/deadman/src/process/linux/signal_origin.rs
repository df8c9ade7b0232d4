//! Where a signal came from: typed at the terminal, it has reached the whole process group already.

use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What the kernel says of signals that it sends by itself, the terminal's among them.
const FROM_KERNEL: i32 = 0x80;
const SIGNALS: usize = 65;

static KERNEL: [AtomicBool; SIGNALS] = [const { AtomicBool::new(false) }; SIGNALS];
/// The handlers that were there before, by their addresses.
static NEXT: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// From now on, takes note of where this signal comes from, and leaves it to the handler that it has. Does nothing if it has none.
pub fn note_origin(number: i32) {
    let Some(next) = usize::try_from(number).ok().and_then(|index| NEXT.get(index)) else { return };
    // SAFETY: the structure is integers and a nullable handler, for which all zeroes is a value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: changes nothing, and writes one sigaction to a place valid for it.
    let known = unsafe { libc::sigaction(number, ptr::null(), &raw mut action) } == 0;
    let has_handler = ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction);
    if !known || !has_handler || action.sa_flags & libc::SA_SIGINFO == 0 || next.load(Ordering::Acquire) != 0
    {
        return;
    }
    next.store(action.sa_sigaction, Ordering::Release);
    action.sa_sigaction = note as Handler as usize;
    // SAFETY: installs a handler that only stores to atomics and calls the one before it, with that one's own flags and mask.
    unsafe { libc::sigaction(number, &raw const action, ptr::null_mut()) };
}

/// Whether the last signal of this number came from the kernel and not from a process.
pub fn came_from_kernel(number: i32) -> bool {
    usize::try_from(number)
        .ok()
        .and_then(|index| KERNEL.get(index))
        .is_some_and(|kernel| kernel.load(Ordering::Acquire))
}

extern "C" fn note(number: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let index = number as usize;
    // SAFETY: the kernel passes a valid one to handlers that ask for it, as this one does.
    let code = unsafe { (*info).si_code };
    KERNEL[index].store(code == FROM_KERNEL, Ordering::Release);
    // SAFETY: the address of a handler of this very type, which the flags said it is; set before this one was installed.
    let next: Handler = unsafe { mem::transmute(NEXT[index].load(Ordering::Acquire)) };
    next(number, info, context);
}
