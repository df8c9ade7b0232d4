//! A leader hands over on request: from the call to the first write that the next leader has on disk.

use std::time::Duration;

use bellwether::boot_now;
use bellwether_benches::{Row, judged, median, percentile, progress};
use bellwether_cluster::{Named, Profile};
use bellwether_support::servers::etcd::{Etcd, EtcdClient};

use crate::machine::put;
use crate::node::name;
use crate::trio::{ETCD, NODES, Trio, times};

const ROUNDS: usize = 15;
const LIMIT: Duration = Duration::from_millis(50);

pub(crate) async fn transfers() {
    progress(&format!("handing the leadership over {ROUNDS} times, and as often at etcd"));
    let ours = transfer(&Trio::form(Profile::Default)).await;
    let theirs = {
        let etcd = Etcd::start(NODES);
        EtcdClient::until_all(&etcd.endpoints()).answered();
        times(&EtcdClient::bench("transfer", &etcd.endpoints(), &[&format!("--rounds={ROUNDS}")]))
    };
    let (middle, other) = (median(ours.clone()), median(theirs));
    Row::time("raft", "graceful transfer of the cluster, to a write at the next leader", middle)
        .peer(ETCD, other.as_secs_f64())
        .note(format!("medians of {ROUNDS}"))
        .print();
    judged(&format!("graceful transfer, longest of {ROUNDS}"), percentile(ours, 1.0), LIMIT);
}

pub(crate) async fn transfer(trio: &Trio) -> Vec<Duration> {
    let clients: Vec<_> = (0..NODES).map(|number| trio.client(number)).collect();
    let mut took = Vec::new();
    for round in 0..ROUNDS {
        let from = trio.leader().await;
        let to = (from + 1 + round % (NODES - 1)) % NODES;
        for client in &clients {
            client.propose(put(0, 1)).await.expect("a write");
        }
        let begin = boot_now();
        clients[from].transfer(Some(Named::Name(name(to)))).await.expect("a transfer");
        clients[to].propose(put(1, 1)).await.expect("a write");
        took.push(boot_now().since(begin));
    }
    took
}
