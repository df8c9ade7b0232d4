//! Ten thousand elections of one process, on one connection: what they cost while nothing happens, and how another process
//! takes them over.

use std::sync::Arc;
use std::time::Duration;

use bellwether::{Election, Store, boot_now};
use bellwether_benches::{cpu_time, cpu_time_of, judged, median, percentile, report, resident_bytes};
use bellwether_nats::from_url;
use bellwether_support::clock;
use bellwether_support::servers::nats::{Server, Version};
use futures_util::future::try_join_all;

use crate::timed::{Renewals, Timed};
use crate::{following, leading, led_by_a_child, stand_on};

const MANY: usize = 10_000;
const TTL: Duration = Duration::from_secs(15);
/// For what the start leaves behind: histories, and first renewals, none of which may fail.
const SETTLING: Duration = Duration::from_secs(20);
const STEADY: Duration = Duration::from_secs(30);

pub(crate) async fn many() {
    let server = Server::start(Version::Current).await;
    let renewals = Arc::<Renewals>::default();
    let url = format!("{}?create=yes", server.url());
    let inner = from_url(&url, clock()).expect("a URL");
    let store = Store::from(Timed { inner, renewals: Arc::clone(&renewals) });
    let (memory, begin) = (resident_bytes(), boot_now());
    let all = stand_on(&store, "a", TTL, MANY).await;
    leading(&all).await;
    report(&format!("start to leading all of {MANY}"), &format!("{:.1?}", boot_now().since(begin)), "");
    tokio::time::sleep(SETTLING).await;
    let memory = resident_bytes().saturating_sub(memory);
    report("memory, each", &format!("{:.1} KiB", memory as f64 / MANY as f64 / 1_024.0), "");
    let first = none_failed(&renewals);
    report("renewals while it settles, p99", &format!("{:.2?}", percentile(first, 0.99)), "");
    let (ours, servers, start) = (cpu_time(), cpu_time_of(server.pid()), boot_now());
    tokio::time::sleep(STEADY).await;
    let span = boot_now().since(start);
    let share = |used: Duration| used.as_secs_f64() / span.as_secs_f64() * 100.0;
    let ours = share(cpu_time().saturating_sub(ours));
    let servers = share(cpu_time_of(server.pid()).saturating_sub(servers));
    let (took, failed) = renewals.take();
    assert!(all.iter().all(Election::is_leader), "some were lost");
    assert!(failed.is_empty(), "{} renewals failed: {}", failed.len(), failed[0]);
    let each_second = took.len() as f64 / span.as_secs_f64();
    report(&format!("renewals a second, ttl {TTL:?}"), &format!("{each_second:.0}"), "");
    report("renewals, median", &format!("{:.2?}", median(took.clone())), "");
    judged("renewals, p99", percentile(took.clone(), 0.99), Duration::from_millis(10));
    report("renewals, longest", &format!("{:.2?}", percentile(took, 1.0)), "");
    let verdict = if ours <= 40.0 { "ok" } else { "MISSED" };
    report("processor, all, steady", &format!("{ours:.1} %"), &format!("of one core, at most 40: {verdict}"));
    report("processor of the server", &format!("{servers:.1} %"), "of one core");
}

/// A process that leads all is killed, and another takes over; that one stops, and a third takes over.
pub(crate) async fn taken_over() {
    let server = Server::start(Version::Current).await;
    let url = format!("{}?create=yes", server.url());
    let mut first = led_by_a_child(&url, TTL, MANY);
    let (second, renewals) = standby(&url, "b", "a").await;
    let killed = boot_now();
    first.kill();
    leading(&second).await;
    let took = boot_now().since(killed);
    report(
        &format!("kill -9 of the leader of all {MANY} to leading all, ttl {TTL:?}"),
        &format!("{took:.2?}"),
        "",
    );
    settled(&renewals).await;
    let (third, renewals) = standby(&url, "c", "b").await;
    let stopped = boot_now();
    let (stops, ()) = tokio::join!(try_join_all(second.iter().map(Election::stop)), leading(&third));
    stops.expect("releases");
    let took = boot_now().since(stopped);
    report(&format!("stop() of the leader of all {MANY} to leading all"), &format!("{took:.2?}"), "");
    settled(&renewals).await;
}

async fn standby(url: &str, id: &str, leader: &str) -> (Vec<Election>, Arc<Renewals>) {
    let renewals = Arc::<Renewals>::default();
    let inner = from_url(url, clock()).expect("a URL");
    let store = Store::from(Timed { inner, renewals: Arc::clone(&renewals) });
    let all = stand_on(&store, id, TTL, MANY).await;
    following(&all, leader).await;
    (all, renewals)
}

async fn settled(renewals: &Renewals) {
    tokio::time::sleep(SETTLING).await;
    none_failed(renewals);
}

/// How long the first renewals took.
fn none_failed(renewals: &Renewals) -> Vec<Duration> {
    let (first, failed) = renewals.take();
    let said = failed.first().map_or("none: ok".to_owned(), |said| format!("none: MISSED, {said}"));
    report(&format!("of the first {} renewals failed", first.len()), &failed.len().to_string(), &said);
    first
}
