//! From the kill −9 of the leader to the first write that a survivor has answered: at both profiles, and at etcd's defaults.

use std::time::Duration;

use bellwether::boot_now;
use bellwether_benches::{Row, judged, median, percentile, progress, report};
use bellwether_cluster::Profile;
use bellwether_support::servers::etcd::{Etcd, EtcdClient};

use crate::machine::put;
use crate::trio::{ETCD, NODES, Trio};

const ROUNDS: usize = 15;
const ROUNDS_OF_ETCD: usize = 9;
const LIMIT: Duration = Duration::from_millis(1_200);
const LIMIT_FAST: Duration = Duration::from_millis(300);
/// Each round begins at another point between two heartbeats.
const HEARTBEAT: Duration = Duration::from_millis(100);

pub(crate) async fn failovers() {
    let theirs = fail_etcd_over().await;
    for (profile, name, limit) in [(Profile::Default, "default", LIMIT), (Profile::Fast, "fast", LIMIT_FAST)]
    {
        progress(&format!("killing a leader {ROUNDS} times at profile {name}"));
        let ours = fail_over(profile).await;
        let (middle, other) = (median(ours.clone()), median(theirs.clone()));
        Row::time("raft", "kill -9 of the cluster's leader to the next write", middle)
            .set(format!("profile {name}"))
            .peer(ETCD, other.as_secs_f64())
            .note("medians")
            .print();
        let what = format!("kill -9 to the next write, profile {name}");
        judged(&format!("{what}, median of {ROUNDS}"), middle, limit);
        judged(&format!("{what}, longest"), percentile(ours, 1.0), limit);
    }
    let longest = percentile(theirs.clone(), 1.0);
    report(
        &format!("etcd, kill -9 to the next write, median of {ROUNDS_OF_ETCD}"),
        &format!("{:.2?}", median(theirs)),
        &format!("longest {longest:.2?}, at its defaults"),
    );
}

pub(crate) async fn fail_over(profile: Profile) -> Vec<Duration> {
    let mut trio = Trio::form(profile);
    let mut took = Vec::new();
    for round in 0..ROUNDS {
        let leader = trio.leader().await;
        trio.until_equal().await;
        let survivors = trio.client_without(leader);
        survivors.propose(put(0, 1)).await.expect("a write");
        pass_part_of_a_heartbeat(round).await;
        let killed = boot_now();
        trio.kill(leader);
        survivors.propose(put(1, 1)).await.expect("a write");
        took.push(boot_now().since(killed));
        trio.start(leader);
        trio.wait_until_ready(leader);
    }
    took
}

async fn fail_etcd_over() -> Vec<Duration> {
    progress(&format!("killing a leader of etcd {ROUNDS_OF_ETCD} times"));
    let mut etcd = Etcd::start(NODES);
    EtcdClient::until_all(&etcd.endpoints()).answered();
    let mut took = Vec::new();
    for round in 0..ROUNDS_OF_ETCD {
        let leader = etcd.leader();
        let client = EtcdClient::until_any(&etcd.endpoints_without(leader));
        pass_part_of_a_heartbeat(round).await;
        let killed = boot_now();
        etcd.kill(leader);
        took.push(client.answered().since(killed));
        etcd.up(leader);
        EtcdClient::until_all(&etcd.endpoints()).answered();
    }
    took
}

async fn pass_part_of_a_heartbeat(round: usize) {
    tokio::time::sleep(HEARTBEAT * round as u32 / ROUNDS as u32).await;
}
