//! A node that is killed and started again after many writes: how long until it is ready, and what it takes of memory and disk.

use bellwether::boot_now;
use bellwether_benches::{Row, Unit, median, progress, resident_bytes_of};
use bellwether_cluster::Profile;
use bellwether_support::servers::etcd::{Etcd, EtcdClient};
use tokio::task::JoinSet;

use crate::machine::{VALUE_BYTES, put};
use crate::trio::{ETCD, NODES, Trio};

const ENTRIES: u64 = 100_000;
const CLIENTS: u64 = 200;
const ROUNDS: usize = 5;
const MIB: f64 = 1_048_576.0;

pub(crate) async fn restarts() {
    progress(&format!("writing {ENTRIES} entries, and restarting a node {ROUNDS} times"));
    let mut trio = Trio::form(Profile::Default);
    fill(&trio).await;
    let follower = (trio.leader().await + 1) % NODES;
    let (mut ours, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        trio.kill(follower);
        let begin = boot_now();
        trio.start(follower);
        trio.wait_until_ready(follower);
        ours.push(boot_now().since(begin));
        memory.push(resident_bytes_of(trio.pid(follower)) as f64 / MIB);
    }
    trio.until_equal().await;
    drop(trio);
    progress("the same with etcd");
    let (theirs, etcd_memory) = restart_etcd();
    let (middle, other) = (median(ours), median(theirs));
    Row::time("raft", format!("restart of a node after {ENTRIES} entries"), middle)
        .peer(ETCD, other.as_secs_f64())
        .note(format!("medians of {ROUNDS}"))
        .print();
    Row::figure("raft", "memory of a node that is ready after that", Unit::Bytes, median(memory) * MIB)
        .peer(ETCD, median(etcd_memory) * MIB)
        .print();
}

async fn fill(trio: &Trio) {
    let leader = trio.leader().await;
    let mut writing = JoinSet::new();
    for number in 0..CLIENTS {
        let client = trio.client(leader);
        writing.spawn(async move {
            for entry in (number..ENTRIES).step_by(CLIENTS as usize) {
                client.propose(put(entry, VALUE_BYTES)).await.expect("a write");
            }
        });
    }
    writing.join_all().await;
}

fn restart_etcd() -> (Vec<std::time::Duration>, Vec<f64>) {
    let mut etcd = Etcd::start(NODES);
    EtcdClient::until_all(&etcd.endpoints()).answered();
    let flags = [format!("--clients={CLIENTS}"), format!("--writes={ENTRIES}"), "--for=120s".to_owned()];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    EtcdClient::bench("put", &[etcd.endpoint(etcd.leader())], &flags);
    let follower = (etcd.leader() + 1) % NODES;
    let (mut took, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        etcd.kill(follower);
        let client = EtcdClient::until_all(&[etcd.endpoint(follower)]);
        let begin = boot_now();
        etcd.up(follower);
        took.push(client.answered().since(begin));
        memory.push(resident_bytes_of(etcd.pid(follower)) as f64 / MIB);
    }
    (took, memory)
}
