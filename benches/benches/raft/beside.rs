//! Ours beside the election of etcd's own client library: three nodes of ours, three members of etcd, each with fsync.

use std::time::Duration;

use bellwether_benches::peers::contest::ACQUIRE;
use bellwether_benches::peers::{Contest, Make, Pair};
use bellwether_benches::{median, progress};
use bellwether_support::servers::etcd::{Etcd, EtcdClient};
use bellwether_support::servers::peers::etcd_election;

use crate::handovers::write;
use crate::trio::{NODES, Trio};

/// Ours has this by default.
const TTL: Duration = Duration::from_secs(15);
const EQUAL_TTL: Duration = Duration::from_secs(3);
/// Of a session of etcd.
const SESSION: Duration = Duration::from_secs(60);
const RAWS: usize = 100;

const GUARANTEES: &str = "theirs has no deadline: a process that was stopped takes itself for the leader when it goes on, until it hears that its session has ended";

const CAUSES: &[(&str, &str)] = &[(ACQUIRE, "it opens its session before it claims")];

/// How long it takes to lead and to follow.
pub(crate) async fn beside() {
    let (trio, etcd) = servers();
    let (client, mut writes) = (trio.client(trio.leader().await), Vec::new());
    for _ in 0..RAWS {
        writes.push(write(&client).await);
    }
    let raw = median(writes);
    let contest = Contest::new("raft", pairs(&trio, &etcd), CAUSES);
    contest.acquire(raw).await;
    // A release and a claim, each of which a majority has on disk.
    contest.handover(raw * 2).await;
    contest.failover().await;
}

/// What elections of one process cost.
pub(crate) async fn growth() {
    let (trio, etcd) = servers();
    Contest::new("raft", pairs(&trio, &etcd), CAUSES).many().await;
}

fn servers() -> (Trio, Etcd) {
    progress("starting three nodes, and three members of etcd");
    let trio = Trio::with_elections();
    let etcd = Etcd::start(NODES);
    EtcdClient::until_all(&etcd.endpoints()).answered();
    (trio, etcd)
}

fn pairs(trio: &Trio, etcd: &Etcd) -> Vec<Pair> {
    let (url, endpoints) = (trio.url_from(0), etcd.endpoints().join(","));
    let ours = |ttl| Make::ours(&url, ttl);
    let theirs = |set, ttl| Make::peer(&etcd_election(), &endpoints, set, ttl).told().silent();
    // A dead leader is followed after a minute: once has to do.
    let defaults = theirs("its default (session of 60 s)", SESSION).measured(1);
    let equal = theirs("session of 3 s", EQUAL_TTL).timed(EQUAL_TTL / 3);
    vec![
        Pair { theirs: defaults, ours: ours(TTL), defaults: true, note: GUARANTEES },
        Pair { theirs: equal, ours: ours(EQUAL_TTL), defaults: false, note: GUARANTEES },
    ]
}
