//! Durable writes per second: so many clients at the leader, each of which waits for its answer before it writes again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bellwether::boot_now;
use bellwether_benches::{Row, Unit, cpu_time_of, median, percentile, progress, report, resident_bytes_of};
use bellwether_cluster::Profile;
use bellwether_support::servers::etcd::{Etcd, EtcdClient};
use tokio::task::JoinSet;

use crate::machine::{KEYS, VALUE_BYTES, put};
use crate::trio::{ETCD, NODES, Trio};

const CLIENTS: [usize; 3] = [1, 64, 500];
/// The number of clients that is judged, and what is asked for: times etcd's writes.
const JUDGED: (usize, f64) = (64, 2.0);
const ROUNDS: usize = 3;
const LASTING: Duration = Duration::from_secs(3);
const MIB: f64 = 1_048_576.0;

/// One round.
#[derive(Clone, Copy)]
struct Round {
    per_second: f64,
    p50: Duration,
    p99: Duration,
    /// Processor time of the three servers, for each write.
    cpu: Duration,
}

pub(crate) async fn writes() {
    progress("starting three nodes, and three members of etcd");
    let etcd = Etcd::start(NODES);
    EtcdClient::until_all(&etcd.endpoints()).answered();
    let trio = Trio::form(Profile::Default);
    for clients in CLIENTS {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        progress(&format!("writing with {clients} clients, {ROUNDS} times for {LASTING:?} each"));
        // In turn, so that whatever else the machine does slows both down.
        for _ in 0..ROUNDS {
            ours.push(write(&trio, clients).await);
            theirs.push(write_to_etcd(&etcd, clients));
        }
        say(clients, middle(&ours), middle(&theirs));
    }
    let memory = |pid: u32| resident_bytes_of(pid) as f64 / MIB;
    let leader = trio.leader().await;
    report(
        "memory of the leader after that",
        &format!("{:.1} MiB", memory(trio.pid(leader))),
        &format!("etcd: {:.1} MiB", memory(etcd.pid(etcd.leader()))),
    );
}

fn say(clients: usize, ours: Round, theirs: Round) {
    let row = Row::figure(
        "raft",
        format!("durable writes with {clients} clients"),
        Unit::PerSecond,
        ours.per_second,
    );
    let row = row.throughput().peer(ETCD, theirs.per_second);
    let (judged, least) = JUDGED;
    let row = if clients == judged { row.bound(least * theirs.per_second) } else { row };
    row.print();
    for (who, round) in [("ours", ours), ("etcd", theirs)] {
        let Round { per_second, p50, p99, cpu } = round;
        report(
            &format!("  {who}"),
            &format!("{per_second:.0} /s"),
            &format!("p50 {p50:.2?}, p99 {p99:.2?}, {cpu:.0?} of processor in the servers for each"),
        );
    }
}

/// The round with the middle rate.
fn middle(rounds: &[Round]) -> Round {
    let rate = median(rounds.iter().map(|round| round.per_second).collect());
    *rounds.iter().find(|round| round.per_second == rate).expect("it is one of them")
}

async fn write(trio: &Trio, clients: usize) -> Round {
    let leader = trio.leader().await;
    let pids: Vec<u32> = (0..NODES).map(|number| trio.pid(number)).collect();
    // All are connected before any writes.
    let mut connected = Vec::new();
    for _ in 0..clients {
        let client = trio.client(leader);
        client.propose(put(0, VALUE_BYTES)).await.expect("a write");
        connected.push(client);
    }
    let next = Arc::new(AtomicU64::new(0));
    let (before, begin) = (cpu_of(&pids), boot_now());
    let end = begin + LASTING;
    let mut writing = JoinSet::new();
    for client in connected {
        let next = Arc::clone(&next);
        writing.spawn(async move {
            let (mut took, mut begun) = (Vec::new(), boot_now());
            while begun < end {
                let command = put(next.fetch_add(1, Ordering::Relaxed), VALUE_BYTES);
                client.propose(command).await.expect("a write");
                let now = boot_now();
                took.push(now.since(begun));
                begun = now;
            }
            took
        });
    }
    let took = writing.join_all().await.concat();
    let lasted = boot_now().since(begin);
    round(took.len(), lasted, (median(took.clone()), percentile(took, 0.99)), cpu_of(&pids) - before)
}

fn write_to_etcd(etcd: &Etcd, clients: usize) -> Round {
    let leader = etcd.endpoint(etcd.leader());
    let pids: Vec<u32> = (0..NODES).map(|number| etcd.pid(number)).collect();
    let before = cpu_of(&pids);
    let measured = EtcdClient::bench(
        "put",
        &[leader],
        &[
            &format!("--clients={clients}"),
            &format!("--for={}ms", LASTING.as_millis()),
            &format!("--value-bytes={VALUE_BYTES}"),
            &format!("--keys={KEYS}"),
        ],
    );
    let number = |key: &str| measured[key].as_u64().expect("a number");
    let nanos = |key: &str| Duration::from_nanos(number(key));
    let writes = usize::try_from(number("writes")).expect("so many fit");
    let cpu = cpu_of(&pids) - before;
    round(writes, nanos("lasted_nanos"), (nanos("p50_nanos"), nanos("p99_nanos")), cpu)
}

fn round(writes: usize, lasted: Duration, (p50, p99): (Duration, Duration), cpu: Duration) -> Round {
    Round {
        per_second: writes as f64 / lasted.as_secs_f64(),
        p50,
        p99,
        cpu: cpu.div_f64(writes.max(1) as f64),
    }
}

fn cpu_of(pids: &[u32]) -> Duration {
    pids.iter().map(|pid| cpu_time_of(*pid)).sum()
}
