//! Ten thousand elections in one process, on the store in memory: what one of them costs, and what reading their metrics does.

use std::time::Duration;

use bellwether::{Election, Metrics, boot_now};
use bellwether_benches::{cpu_time, report, resident_bytes};

const ELECTIONS: usize = 10_000;
const STEADY: Duration = Duration::from_secs(15);
/// Scrapes of all metrics, one after the other.
const SCRAPES: usize = 20;

#[tokio::main]
async fn main() {
    let (store, metrics) = (bellwether::memory(), Metrics::new());
    let (memory_before, cpu_before, begin) = (resident_bytes(), cpu_time(), boot_now());
    let mut all = Vec::with_capacity(ELECTIONS);
    for number in 0..ELECTIONS {
        let builder = Election::builder(format!("election-{number}")).backend(store.clone()).id("a");
        all.push(builder.metrics(&metrics).start().await.expect("a start"));
    }
    for election in &all {
        election.wait_for_leadership().await.expect("a leadership");
    }
    let (started, cpu_started) = (boot_now(), cpu_time());
    let memory = resident_bytes().saturating_sub(memory_before);
    tokio::time::sleep(STEADY).await;
    let span = boot_now().since(started);
    let cpu = cpu_time().saturating_sub(cpu_started);
    let leading = all.iter().filter(|election| election.is_leader()).count();
    assert_eq!(leading, ELECTIONS, "some were lost");
    let each = |value: f64| value / ELECTIONS as f64;
    report("elections, all led by one process", &ELECTIONS.to_string(), "");
    report(
        "start to leading, each",
        &format!("{:.1} µs", each(started.since(begin).as_nanos() as f64) / 1e3),
        "",
    );
    let starting = cpu_started.saturating_sub(cpu_before);
    report("processor time to start, each", &format!("{:.1} µs", each(starting.as_nanos() as f64) / 1e3), "");
    report("memory, each", &format!("{:.2} KiB", each(memory as f64) / 1_024.0), "");
    let share = cpu.as_secs_f64() / span.as_secs_f64() * 100.0;
    report("processor, all, steady, ttl 15s", &format!("{share:.2} %"), "of one core");
    let per_second = each(cpu.as_nanos() as f64) / span.as_secs_f64() / 1e3;
    report("processor, each, steady", &format!("{per_second:.2} µs/s"), "");
    let ttl = all[0].settings().timing().ttl();
    let (scraping, mut least) = (std::thread::spawn(move || scrape(&metrics)), Duration::MAX);
    while !scraping.is_finished() {
        let remaining = all.iter().map(|election| election.leadership().expect("it leads").remaining());
        least = least.min(remaining.min().unwrap_or_default());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (mut took, text) = scraping.join().expect("scrapes");
    took.sort_unstable();
    let samples = text.lines().filter(|line| !line.starts_with('#')).count();
    report(
        "metrics, a scrape of all, median",
        &format!("{:.0} ms", took[SCRAPES / 2].as_secs_f64() * 1e3),
        "",
    );
    let size = text.len() as f64 / f64::from(1 << 20);
    report("metrics, their size", &format!("{size:.1} MiB"), &format!("{samples} samples"));
    let (least, most) = (least.as_secs_f64(), (ttl * 9 / 10).as_secs_f64());
    report("least time to a deadline meanwhile", &format!("{least:.2} s"), &format!("of {most:.2} s"));
}

/// In a thread of its own, as `--http` does it.
fn scrape(metrics: &Metrics) -> (Vec<Duration>, String) {
    let mut text = String::new();
    let took = (0..SCRAPES).map(|_| {
        let begin = boot_now();
        text = metrics.to_text();
        boot_now().since(begin)
    });
    (took.collect(), text)
}
