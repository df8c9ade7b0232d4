//! From the kill −9 of a leader to the next: while one watch lasts, and across the ends of watches.

use std::time::Duration;

use bellwether::boot_now;
use bellwether_benches::{judged, median, percentile, progress, report};
use bellwether_support::servers::kubernetes::Server;

use crate::stage::{Namespace, following, led_by_a_child, stand_alone};

const TTL: Duration = Duration::from_secs(2);
const ROUNDS: usize = 15;
const BEYOND_TTL_MAX: Duration = Duration::from_millis(300);

pub(crate) async fn failovers(server: &Server) {
    let namespace = Namespace::of(server, "failovers");
    let url = namespace.url();
    failover("", &url).await;
    failover("across the end of a watch: ", &format!("{url}&watch=1s")).await;
}

async fn failover(place: &str, url: &str) {
    progress(&format!("{place}killing a leader {ROUNDS} times"));
    let mut took = Vec::new();
    for round in 0..ROUNDS {
        let mut child = led_by_a_child(url, TTL, 1);
        let follower = stand_alone(url, "b", TTL).await;
        following([&follower], "a").await;
        // Each at another point between two renewals.
        tokio::time::sleep(TTL / 3 * round as u32 / ROUNDS as u32).await;
        let killed = boot_now();
        child.kill();
        follower.wait_for_leadership().await.expect("a leadership");
        took.push(boot_now().since(killed));
        follower.stop().await.expect("a release");
    }
    let (shortest, longest) = (percentile(took.clone(), 0.0), percentile(took.clone(), 1.0));
    let what = format!("{place}kill -9 to the next leadership, longest of {ROUNDS}");
    judged(&what, longest, TTL + BEYOND_TTL_MAX);
    report("  shortest", &format!("{shortest:.2?}"), &format!("ttl {TTL:?}"));
    report("  median", &format!("{:.2?}", median(took)), "");
}
