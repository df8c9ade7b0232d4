//! Ten thousand elections in one program: metrics stay bounded, and nobody who reads them delays a renewal.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether_backend::MemoryStore;
use bellwether_deadman::boot_now;
use bellwether_election::{Election, Metrics, Store};
use common::*;

const ELECTIONS: usize = 10_000;
const TTL: Duration = Duration::from_secs(15);
const RENEW: Duration = Duration::from_secs(5);
/// A tenth of the ttl.
const MARGIN: Duration = Duration::from_millis(1_500);
/// Later than this is not on time. It leaves as much again to the deadline.
const LATE: Duration = Duration::from_secs(4);
/// How long a metric's line may be here, labels and all.
const LINE_MAX_BYTES: usize = 200;
const SCRAPES: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_of_ten_thousand_elections_are_bounded_and_reading_them_delays_no_renewal() {
    let (store, metrics) = (Store::new(connect(&MemoryStore::default())), Metrics::new());
    let start = |number: usize| {
        let builder = Election::builder(format!("e{number}")).id("a").ttl(TTL).renew_interval(RENEW);
        builder.backend(store.clone()).metrics(&metrics).start()
    };
    let all = futures_util::future::try_join_all((0..ELECTIONS).map(start)).await.unwrap();
    for election in &all {
        soon(election.wait_for_leadership()).await.unwrap();
    }
    // In a thread of its own, like a server of `/metrics`: so the first is a scrape while all of them lead for the first time.
    let is_over = Arc::new(AtomicBool::new(false));
    let scraping = std::thread::spawn({
        let (metrics, is_over) = (metrics.clone(), Arc::clone(&is_over));
        move || {
            let mut took = Vec::new();
            let mut text = String::new();
            while took.len() < SCRAPES || !is_over.load(Ordering::Relaxed) {
                let begun = boot_now();
                text = metrics.to_text();
                took.push(boot_now().since(begun));
            }
            (took, text)
        }
    });
    // Every election renews twice meanwhile.
    let (begun, mut least) = (boot_now(), Duration::MAX);
    while boot_now().since(begun) < RENEW * 2 {
        for election in &all {
            let remaining = election.leadership().expect("nothing is lost").remaining();
            least = least.min(remaining);
        }
        tokio::time::sleep(ms(20)).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let (took, text) = tokio::task::spawn_blocking(|| scraping.join().unwrap()).await.unwrap();
    let late = (TTL - MARGIN - RENEW).saturating_sub(least);
    let samples = text.lines().filter(|line| !line.starts_with('#')).count();
    println!(
        "{} scrapes of {samples} samples, {} KiB, took {:?} at most; renewals were {late:?} late at most",
        took.len(),
        text.len() / 1_024,
        took.iter().max()
    );
    assert!(late < LATE, "a renewal was {late:?} late");
    assert!(samples >= ELECTIONS && samples <= ELECTIONS * Metrics::series_max(), "{samples} samples");
    // An election that is led in peace, as the documentation says.
    assert!(samples <= ELECTIONS * 36, "{samples} samples");
    assert!(text.len() <= samples * LINE_MAX_BYTES, "{} bytes", text.len());
    let renewed = text.lines().filter(|line| {
        line.starts_with("election_heartbeat_duration_seconds_count") && line.contains("status=\"success\"")
    });
    assert_eq!(renewed.count(), ELECTIONS, "each has renewed");
    assert!(!text.contains("election_losses_total{"), "nothing was lost");
    drop(all);
}
