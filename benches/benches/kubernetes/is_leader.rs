//! `is_leader()` beside client-go's `IsLeader()`, which looks at no clock.

use std::hint::black_box;
use std::time::Duration;

use bellwether::boot_now;
use bellwether_benches::{Row, Unit, median, progress};
use bellwether_support::servers::kubernetes::Server;

use crate::stage::{Namespace, client_go_name, stand_alone};

const CALLS: u64 = 1_000_000;
const ROUNDS: usize = 20;

pub(crate) async fn is_leader(server: &Server) {
    let namespace = Namespace::of(server, "is-leader");
    progress(&format!("calling is_leader() {ROUNDS} times {CALLS} times"));
    let election = stand_alone(&namespace.url(), "a", Duration::from_secs(15)).await;
    election.wait_for_leadership().await.expect("a leadership");
    let mut nanos = Vec::new();
    for _ in 0..ROUNDS {
        let start = boot_now();
        for _ in 0..CALLS {
            assert!(black_box(&election).is_leader(), "the leadership was lost");
        }
        nanos.push(boot_now().since(start).as_nanos() as f64 / CALLS as f64);
    }
    election.stop().await.expect("a release");
    let ours = median(nanos);
    let measured = namespace.client_go("is-leader", &["--rounds", &ROUNDS.to_string()]);
    let all = measured["nanos"].as_array().expect("a list of times");
    let theirs = median(all.iter().map(|nanos| nanos.as_f64().expect("nanoseconds")).collect());
    Row::figure("kubernetes", "is_leader()", Unit::Seconds, ours / 1e9)
        .peer(client_go_name(), theirs / 1e9)
        .cause("ours compares a deadline with the clock; theirs compares a name in memory, under a lock")
        .note("ours is false from its deadline on, even while the process was stopped; theirs looks at no clock")
        .print();
}
