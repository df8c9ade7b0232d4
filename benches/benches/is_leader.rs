//! `is_leader()` against a bare read of the boot-time clock.

use std::hint::black_box;
use std::time::Duration;

use bellwether::{Election, boot_now};
use bellwether_benches::{median, report};

const CALLS: u64 = 200_000;
const ROUNDS: usize = 41;

fn nanos_per_call(mut call: impl FnMut()) -> f64 {
    let begin = boot_now();
    for _ in 0..CALLS {
        call();
    }
    boot_now().since(begin).as_nanos() as f64 / CALLS as f64
}

#[tokio::main]
async fn main() {
    let election = Election::builder("bench")
        .backend(bellwether::memory())
        .id("a")
        .ttl(Duration::from_secs(60))
        .start()
        .await
        .expect("a start");
    let leadership = election.wait_for_leadership().await.expect("a leadership");
    // In turn, so that a clock that changes its speed changes it for all.
    let (mut raw, mut asked, mut held) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        raw.push(nanos_per_call(|| {
            black_box(boot_now());
        }));
        asked.push(nanos_per_call(|| {
            black_box(election.is_leader());
        }));
        held.push(nanos_per_call(|| {
            black_box(leadership.is_valid());
        }));
    }
    let ratios = |all: &[f64]| median(all.iter().zip(&raw).map(|(one, raw)| one / raw).collect());
    let (asked_ratio, held_ratio) = (ratios(&asked), ratios(&held));
    report("boot-time clock read", &format!("{:.1} ns", median(raw.clone())), "");
    report("is_leader()", &format!("{:.1} ns", median(asked)), "");
    report("Leadership::is_valid()", &format!("{:.1} ns", median(held)), "");
    report("is_leader() / clock read", &format!("{asked_ratio:.2}"), "at most 1.50");
    report("is_valid() / clock read", &format!("{held_ratio:.2}"), "at most 1.50");
    assert!(asked_ratio <= 1.5 && held_ratio <= 1.5, "is_leader() costs more than it may");
}
