//! From the start of three processes with nothing on disk to three that are ready.

use std::time::Duration;

use bellwether::boot_now;
use bellwether_benches::{Row, judged, median, percentile, progress};
use bellwether_cluster::Profile;
use bellwether_support::servers::etcd::{Etcd, EtcdClient};

use crate::trio::{ETCD, NODES, Trio};

const ROUNDS: usize = 5;
const LIMIT: Duration = Duration::from_secs(2);

pub(crate) async fn forming() {
    progress(&format!("forming three nodes {ROUNDS} times, and as many of etcd"));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begin = boot_now();
        let trio = Trio::form(Profile::Default);
        ours.push(boot_now().since(begin));
        drop(trio);
        let begin = boot_now();
        let etcd = Etcd::start(NODES);
        theirs.push(EtcdClient::until_all(&etcd.endpoints()).answered().since(begin));
    }
    let (middle, other) = (median(ours.clone()), median(theirs));
    Row::time("raft", "three nodes from nothing", middle)
        .peer(ETCD, other.as_secs_f64())
        .note(format!("medians of {ROUNDS}"))
        .print();
    judged(&format!("three nodes from nothing to ready, longest of {ROUNDS}"), percentile(ours, 1.0), LIMIT);
}
