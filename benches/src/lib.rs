//! What the benchmarks share: medians, what the kernel says of a process, and rows of results.

mod hops;
pub mod peers;
mod progress;
mod rows;

use std::time::Duration;

pub use hops::{Hops, RawHandover, Stamped, Stamping, Stamps};
pub use progress::progress;
pub use rows::{Axis, Better, Row, Unit, judged, judged_figure, report};

/// The middle of what was measured.
pub fn median<T: Copy + PartialOrd>(mut all: Vec<T>) -> T {
    assert!(!all.is_empty(), "nothing was measured");
    all.sort_by(|a, b| a.partial_cmp(b).expect("comparable"));
    all[all.len() / 2]
}

/// The value below which `share` of what was measured lies.
pub fn percentile<T: Copy + PartialOrd>(mut all: Vec<T>, share: f64) -> T {
    assert!(!all.is_empty(), "nothing was measured");
    all.sort_by(|a, b| a.partial_cmp(b).expect("comparable"));
    all[((all.len() - 1) as f64 * share).round() as usize]
}

/// Memory of this process that is really there, in bytes.
pub fn resident_bytes() -> u64 {
    resident_bytes_of(std::process::id())
}

/// Memory of a process that is really there, in bytes: its heap, stacks, and what it has touched of its program.
pub fn resident_bytes_of(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).expect("Linux's /proc");
    let pages: u64 = text.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a page count");
    pages * 4_096
}

/// Processor time that this process has used.
pub fn cpu_time() -> Duration {
    cpu_time_of(std::process::id())
}

/// Processor time that a process has used, all its living threads together.
pub fn cpu_time_of(pid: u32) -> Duration {
    let spent = |file: std::path::PathBuf| -> u64 {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
    };
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("Linux's /proc");
    let all = tasks.flatten().map(|task| spent(task.path().join("schedstat"))).sum::<u64>();
    Duration::from_nanos(all.max(spent(format!("/proc/{pid}/schedstat").into())))
}
