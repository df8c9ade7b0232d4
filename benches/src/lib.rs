//! What the benchmarks share: medians, and what the kernel says of this process.

mod hops;

use std::time::Duration;

pub use hops::{Hops, RawHandover, Stamped, Stamping, Stamps};

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

/// Memory that is really there, in bytes.
pub fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux's /proc");
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

/// A figure with its limit, and whether it was kept.
pub fn judged(what: &str, took: Duration, limit: Duration) {
    let verdict = if took <= limit { "ok" } else { "MISSED" };
    report(what, &format!("{took:.2?}"), &format!("at most {limit:?}: {verdict}"));
}

/// One line of a result: what, how much, and what was asked for.
pub fn report(what: &str, got: &str, wanted: &str) {
    println!("{what:<58} {got:>16}   {wanted}");
}
