//! Ten thousand elections in one process, on the store in memory: what one of them costs.

use std::time::Duration;

use bellwether::{Election, boot_now};
use bellwether_benches::{cpu_time, report, resident_bytes};

const ELECTIONS: usize = 10_000;
const STEADY: Duration = Duration::from_secs(15);

#[tokio::main]
async fn main() {
    let store = bellwether::memory();
    let (memory_before, cpu_before, begin) = (resident_bytes(), cpu_time(), boot_now());
    let mut all = Vec::with_capacity(ELECTIONS);
    for number in 0..ELECTIONS {
        let builder = Election::builder(format!("election-{number}")).backend(store.clone()).id("a");
        all.push(builder.start().await.expect("a start"));
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
}
