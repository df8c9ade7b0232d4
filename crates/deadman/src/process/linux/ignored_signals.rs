//! Which signals this program was started to ignore, as under `nohup`.
//!
//! Found out before `main`: Rust's runtime ignores SIGPIPE from then on, and whoever listens to signals changes the others.

use std::hint::black_box;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

static IGNORED: AtomicU64 = AtomicU64::new(0);

/// The C library runs what is listed here before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static TAKE_NOTE: extern "C" fn() = take_note;

extern "C" fn take_note() {
    let mut ignored = 0;
    for number in 1..=64 {
        // SAFETY: the structure is integers and a nullable handler, for which all zeroes is a value.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: changes nothing, and writes one sigaction to a place valid for it. A number that is none is refused.
        let known = unsafe { libc::sigaction(number, ptr::null(), &raw mut action) } == 0;
        if known && action.sa_sigaction == libc::SIG_IGN {
            ignored |= 1 << (number - 1);
        }
    }
    IGNORED.store(ignored, Ordering::Relaxed);
}

/// Signals that are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredSignals(u64);

impl IgnoredSignals {
    /// Those that this program was started to ignore.
    pub fn at_start() -> IgnoredSignals {
        // Keeps the linker from leaving it out.
        black_box(&TAKE_NOTE);
        IgnoredSignals(IGNORED.load(Ordering::Relaxed))
    }

    /// Whether the signal of this number is one.
    pub fn contains(self, number: i32) -> bool {
        (1..=64).contains(&number) && self.0 & (1 << (number - 1)) != 0
    }

    /// As one number, for another process of this program.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Back from that number.
    pub fn from_bits(bits: u64) -> IgnoredSignals {
        IgnoredSignals(bits)
    }
}
