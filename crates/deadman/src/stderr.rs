//! Words on stderr from processes that keep a deadline.
//!
//! A pipe that nobody reads, or a terminal that was stopped, holds up whoever writes to it for as long as it likes. A process that has others
//! to kill must not be held up, so what it says is written at once or not at all.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::io;

#[cfg(any(target_os = "linux", target_os = "android"))]
const AT_ONCE: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
/// macOS has no such flag; there Rust's runtime ignores SIGPIPE, which is enough.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const AT_ONCE: SendFlags = SendFlags::DONTWAIT;

/// Writes a line to stderr if that is possible at once; else the line is lost.
pub fn say_without_waiting(line: &str) {
    let line = format!("{line}\n");
    let stderr = io::stderr();
    match rustix::net::send(&stderr, line.as_bytes(), AT_ONCE) {
        Err(Errno::NOTSOCK) => {}
        _ => return,
    }
    // Not to wait is a property of the open file, which others share. So it is opened once more.
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if let Ok(own) = rustix::fs::open("/proc/self/fd/2", flags, Mode::empty()) {
        let _ = rustix::io::write(&own, line.as_bytes());
    }
}

/// From now on, a panic of this process is told by [`say_without_waiting`] too.
pub fn never_wait_for_stderr() {
    std::panic::set_hook(Box::new(|panic| say_without_waiting(&format!("bellwether: {panic}"))));
}
