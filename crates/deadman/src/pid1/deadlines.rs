//! Deadlines that process 1 keeps, in a page of memory that it shares with the program.
//!
//! The program only writes a word; process 1 is woken for a deadline that comes earlier than those it knows of, and looks again when the
//! earliest has come. So a renewal costs nothing, and a program that is stopped has told all that there is to tell.
//!
//! What runs past a deadline is of a command's tree if it descends from the program: orphans of the tree come to the program, which adopts them.
//! Excepted is what the program has said to be its own. Strangers, who came into the container from outside, descend from nobody in it.

use crate::boot_now;
use crate::process::{Pid, ProcStat, is_gone};
use crate::timerfd::TimerFd;
use bellwether_core::Boot;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{fs, io, ptr};

/// The most deadlines at a time: one for every command that runs.
const SLOTS: usize = 64;
/// The most processes at a time that are spared; any more are taken for a command's.
const SPARED_MAX: usize = 256;
/// No deadline, and nobody.
const NONE: u64 = 0;

#[derive(Debug)]
struct SharedPage {
    page: &'static Page,
    /// An eventfd: readable when there is an earlier deadline.
    news: OwnedFd,
    /// A timer of process 1's.
    timer: TimerFd,
}

/// What the program tells process 1.
#[derive(Debug)]
struct Page {
    deadlines: [AtomicU64; SLOTS],
    /// Processes of the program's own: see [`SparedProcess`].
    spared: [AtomicU64; SPARED_MAX],
}

static SHARED: OnceLock<SharedPage> = OnceLock::new();
static TAKEN: [AtomicBool; SLOTS] = [const { AtomicBool::new(false) }; SLOTS];

/// In process 1, before it forks.
pub(super) fn share() -> io::Result<()> {
    // SAFETY: takes no pointers; the answer is checked before use.
    let news = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if news < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was opened just now and nothing else knows of it.
    let news = unsafe { OwnedFd::from_raw_fd(news) };
    let timer = TimerFd::new()?;
    let size = size_of::<Page>();
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: asks for fresh memory anywhere; nothing that exists is touched.
    let page = unsafe { libc::mmap(ptr::null_mut(), size, access, kind, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fresh, zeroed, large enough, aligned to a page, and never unmapped; whoever shares it uses it as these atomics only.
    let page = unsafe { &*page.cast::<Page>() };
    let _ = SHARED.set(SharedPage { page, news, timer });
    Ok(())
}

fn shared() -> &'static SharedPage {
    SHARED.get().expect("shared before process 1 forked")
}

/// In the program: one deadline.
#[derive(Debug)]
pub(super) struct DeadlineSlot(usize);

impl DeadlineSlot {
    pub(super) fn claim() -> Option<DeadlineSlot> {
        SHARED.get()?;
        TAKEN.iter().position(|taken| !taken.swap(true, Ordering::AcqRel)).map(DeadlineSlot)
    }

    pub(super) fn set(&mut self, at: Boot) {
        let before = shared().page.deadlines[self.0].swap(at.as_nanos().max(1), Ordering::AcqRel);
        if before == NONE || at.as_nanos() < before {
            let one = 1u64.to_ne_bytes();
            // SAFETY: eight bytes, valid for the call. A full counter is news already.
            unsafe { libc::write(shared().news.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        }
    }
}

impl Drop for DeadlineSlot {
    fn drop(&mut self) {
        shared().page.deadlines[self.0].store(NONE, Ordering::Release);
        TAKEN[self.0].store(false, Ordering::Release);
    }
}

/// What process 1 wakes up for.
pub(super) fn watched() -> [BorrowedFd<'static>; 2] {
    [shared().timer.as_fd(), shared().news.as_fd()]
}

/// In process 1: a process that runs although a deadline has passed. Also sets the timer to the next deadline.
pub(super) fn overdue(program: Pid) -> Option<i32> {
    let SharedPage { page, news, timer } = shared();
    let mut count = [0u8; 8];
    // SAFETY: the kernel writes at most eight bytes to a buffer valid and exclusive for that many.
    unsafe { libc::read(news.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    let now = boot_now().as_nanos();
    let mut next = None;
    for slot in &page.deadlines {
        match slot.load(Ordering::Acquire) {
            NONE => {}
            past if past <= now => {
                if let Some(left) = somebody_of(program, page) {
                    return Some(left);
                }
                // Its tree is gone, and the program is about to say so.
                let _ = slot.compare_exchange(past, NONE, Ordering::AcqRel, Ordering::Acquire);
            }
            ahead => next = Some(next.map_or(ahead, |next: u64| next.min(ahead))),
        }
    }
    timer.set(next.map(Boot::from_nanos));
    None
}

/// A living process that descends from the program and is not spared. Without a look at them, there may be some.
fn somebody_of(program: Pid, page: &Page) -> Option<i32> {
    // One of another namespace has other numbers.
    let own_numbers = fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == "1");
    let Some(entries) = fs::read_dir("/proc").ok().filter(|_| own_numbers) else { return Some(0) };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .find(|pid| is_work(*pid, program.as_raw_pid(), &page.spared))
}

/// How often an ancestry is followed anew that changed while it was.
const ATTEMPTS_MAX: usize = 8;
/// The longest ancestry.
const ANCESTORS_MAX: usize = 10_000;

fn is_work(pid: i32, program: i32, spared: &[AtomicU64]) -> bool {
    let marked = |mark: SparedProcess| spared.iter().any(|one| one.load(Ordering::Acquire) == mark.word());
    'attempt: for _ in 0..ATTEMPTS_MAX {
        let stat = match ProcStat::of(pid) {
            Ok(stat) => stat,
            Err(error) => return !is_gone(&error),
        };
        let alone = SparedProcess { pid, began: stat.began, with_descendants: false };
        if pid == program || stat.ended || marked(alone) {
            return false;
        }
        let (mut next, mut stat) = (pid, stat);
        for _ in 0..ANCESTORS_MAX {
            if next == program {
                return true;
            }
            // Process 1, or somebody outside: not of the program.
            if next <= 1 || marked(SparedProcess { pid: next, began: stat.began, with_descendants: true }) {
                return false;
            }
            let parent = stat.parent;
            if parent > 1 {
                let Ok(found) = ProcStat::of(parent) else { continue 'attempt };
                stat = found;
            }
            next = parent;
        }
    }
    // Its ancestors could not be followed, so it counts.
    true
}

/// A process of the program's own, in one word.
#[derive(Clone, Copy)]
struct SparedProcess {
    pid: i32,
    began: u64,
    with_descendants: bool,
}

impl SparedProcess {
    fn word(self) -> u64 {
        // Numbers have at most 22 bits, and 40 are 348 years of ticks.
        let pid = u64::from(self.pid.cast_unsigned());
        u64::from(self.with_descendants) << 63 | pid << 40 | self.began & ((1 << 40) - 1)
    }
}

/// In the program: a process of its own. Called off when dropped.
#[derive(Debug)]
pub(super) struct Spared(usize);

impl Spared {
    /// `None` if process 1 is not this program's, the process is gone, or there are too many.
    pub(super) fn new(pid: Pid, with_descendants: bool) -> Option<Spared> {
        let page = SHARED.get()?.page;
        // By the numbers that process 1 goes by.
        let own = fs::read_link("/proc/self").ok()?.to_str()?.parse::<u32>() == Ok(std::process::id());
        let began = ProcStat::of(pid.as_raw_pid()).ok().filter(|_| own)?.began;
        let word = SparedProcess { pid: pid.as_raw_pid(), began, with_descendants }.word();
        let free =
            |slot: &AtomicU64| slot.compare_exchange(NONE, word, Ordering::AcqRel, Ordering::Acquire).is_ok();
        page.spared.iter().position(free).map(Spared)
    }
}

impl Drop for Spared {
    fn drop(&mut self) {
        shared().page.spared[self.0].store(NONE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_given_out_again_names_another_process() {
        let mark = SparedProcess { pid: 7, began: 4711, with_descendants: false };
        let others = [
            SparedProcess { pid: 8, ..mark },
            SparedProcess { began: 4712, ..mark },
            SparedProcess { with_descendants: true, ..mark },
        ];
        for other in others {
            assert_ne!(other.word(), mark.word());
        }
        assert_ne!(mark.word(), NONE);
    }
}
