//! Deadlines that process 1 keeps, in a page of memory that it shares with the program.
//!
//! The program only writes a word; process 1 is woken for a deadline that comes earlier than those it knows of, and looks again when the
//! earliest has come. So a renewal costs nothing, and a program that is stopped has told all that there is to tell.

use crate::boot_now;
use crate::process::Pid;
use crate::setting::once_at;
use bellwether_core::Boot;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{fs, io, ptr};

/// The most deadlines at a time: one for every command that runs.
const SLOTS: usize = 64;
/// No deadline.
const NONE: u64 = 0;

#[derive(Debug)]
struct Shared {
    deadlines: &'static [AtomicU64; SLOTS],
    /// An eventfd: readable when there is an earlier deadline.
    news: OwnedFd,
    /// A timer of process 1's.
    timer: OwnedFd,
}

static SHARED: OnceLock<Shared> = OnceLock::new();
static TAKEN: [AtomicBool; SLOTS] = [const { AtomicBool::new(false) }; SLOTS];

/// In process 1, before it forks.
pub(super) fn share() -> io::Result<()> {
    // SAFETY: takes no pointers; the answer is checked before use.
    let news = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: takes no pointers; the answer is checked before use.
    let timer =
        owned(unsafe { libc::timerfd_create(libc::CLOCK_BOOTTIME, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) })?;
    let size = size_of::<[AtomicU64; SLOTS]>();
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: asks for fresh memory anywhere; nothing that exists is touched.
    let page = unsafe { libc::mmap(ptr::null_mut(), size, access, kind, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fresh, zeroed, large enough, aligned to a page, and never unmapped; whoever shares it uses it as these atomics only.
    let deadlines = unsafe { &*page.cast::<[AtomicU64; SLOTS]>() };
    let _ = SHARED.set(Shared { deadlines, news, timer });
    Ok(())
}

fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was opened just now and nothing else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn shared() -> &'static Shared {
    SHARED.get().expect("shared before process 1 forked")
}

/// In the program: one deadline.
#[derive(Debug)]
pub(super) struct Slot(usize);

impl Slot {
    pub(super) fn claim() -> Option<Slot> {
        SHARED.get()?;
        TAKEN.iter().position(|taken| !taken.swap(true, Ordering::AcqRel)).map(Slot)
    }

    pub(super) fn set(&mut self, at: Boot) {
        let before = shared().deadlines[self.0].swap(at.as_nanos().max(1), Ordering::AcqRel);
        if before == NONE || at.as_nanos() < before {
            let one = 1u64.to_ne_bytes();
            // SAFETY: eight bytes, valid for the call. A full counter is news already.
            unsafe { libc::write(shared().news.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        shared().deadlines[self.0].store(NONE, Ordering::Release);
        TAKEN[self.0].store(false, Ordering::Release);
    }
}

/// What process 1 wakes up for.
pub(super) fn watched() -> [BorrowedFd<'static>; 2] {
    [shared().timer.as_fd(), shared().news.as_fd()]
}

/// In process 1: a process that runs although a deadline has passed. Also sets the timer to the next deadline.
pub(super) fn overdue(program: Pid) -> Option<i32> {
    let Shared { deadlines, news, timer } = shared();
    let mut count = [0u8; 8];
    // SAFETY: the kernel writes at most eight bytes to a buffer valid and exclusive for that many.
    unsafe { libc::read(news.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    let now = boot_now().as_nanos();
    let mut next = None;
    for slot in deadlines.iter() {
        match slot.load(Ordering::Acquire) {
            NONE => {}
            past if past <= now => {
                if let Some(left) = somebody_but(program) {
                    return Some(left);
                }
                // Its tree is gone, and the program is about to say so.
                let _ = slot.compare_exchange(past, NONE, Ordering::AcqRel, Ordering::Acquire);
            }
            ahead => next = Some(next.map_or(ahead, |next: u64| next.min(ahead))),
        }
    }
    let setting = once_at(next.map(Boot::from_nanos));
    // SAFETY: the descriptor is open, the setting is read during the call only, and no old one is asked for. Setting it also forgets
    // what it had reached before.
    let status = unsafe {
        libc::timerfd_settime(timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &raw const setting, ptr::null_mut())
    };
    assert!(status == 0, "timerfd_settime refused {next:?}: {}", io::Error::last_os_error());
    None
}

/// A living process that is none of ours. Without a look at them, there may be some.
fn somebody_but(program: Pid) -> Option<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Some(0) };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).find(|pid| {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
        let Some((name, rest)) = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')) else {
            return true;
        };
        let ended = rest.trim_start().starts_with(['Z', 'X']);
        let ours = *pid == 1 || *pid == program.as_raw_pid() || name.starts_with("bellw-");
        !ended && !ours
    })
}
