//! What the benchmarks share: medians, and what the kernel says of this process.

use std::time::Duration;

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
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux's /proc");
    let mut nanos = 0;
    for task in std::fs::read_dir("/proc/self/task").expect("Linux's /proc").flatten() {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        nanos += stat.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    }
    let own: u64 = text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanos.max(own))
}

/// One line of a result: what, how much, and what was asked for.
pub fn report(what: &str, got: &str, wanted: &str) {
    println!("{what:<58} {got:>16}   {wanted}");
}
