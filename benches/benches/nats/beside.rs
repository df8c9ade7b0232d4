//! Ours beside NATS-Leader-Election, on the same server.

use std::time::Duration;

use bellwether::boot_now;
use bellwether_benches::peers::contest::ACQUIRE;
use bellwether_benches::peers::{Contest, Make, Pair};
use bellwether_benches::{median, progress};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::servers::peers::nats_leader_election;
use serde_json::json;

use crate::{BUCKET, RECORD, RawPair, raw};

const STORE: &str = "nats";
/// Ours has this by default.
const TTL: Duration = Duration::from_secs(15);
const EQUAL_TTL: Duration = Duration::from_secs(3);
const EQUAL_RENEW: Duration = Duration::from_secs(1);
const RAWS: usize = 100;

const GUARANTEES: &str = "theirs has no deadline: a process that was stopped takes itself for the leader when it goes on, until a heartbeat fails";

const CAUSES: &[(&str, &str)] =
    &[(ACQUIRE, "it reads the key before it writes, so that its epoch is above every earlier one")];

/// How long it takes to lead and to follow.
pub(crate) async fn beside() {
    let server = server().await;
    let (write, handover) = raws(&server).await;
    let contest = Contest::new(STORE, pairs(&server), CAUSES);
    contest.acquire(write).await;
    contest.handover(handover).await;
    contest.failover().await;
    contest.is_leader().await;
}

/// What followers and elections cost.
pub(crate) async fn growth() {
    let server = server().await;
    let contest = Contest::new(STORE, pairs(&server), CAUSES);
    let count = async |_: &Make| server.messages_sent().await;
    contest.requests(count).await;
    contest.herd(count).await;
    contest.many().await;
}

async fn server() -> Server {
    progress("starting a server");
    let server = Server::start(Version::Current).await;
    server.bucket(BUCKET, json!({})).await;
    server
}

fn pairs(server: &Server) -> Vec<Pair> {
    let url = server.url();
    let theirs = |set, ttl| Make::peer(&nats_leader_election(), &url, set, ttl).told();
    let ours = |ttl| Make::ours(&format!("{url}?create=yes"), ttl);
    let documented = theirs("as its documentation has it (ttl 10 s, heartbeat 1 s)", Duration::from_secs(10));
    vec![
        Pair { theirs: documented, ours: ours(TTL), defaults: true, note: GUARANTEES },
        Pair {
            theirs: theirs("ttl 3 s, heartbeat 1 s", EQUAL_TTL).timed(EQUAL_RENEW),
            ours: ours(EQUAL_TTL),
            defaults: false,
            note: GUARANTEES,
        },
    ]
}

/// The medians of a write at a revision, and of a handover by the fewest messages.
async fn raws(server: &Server) -> (Duration, Duration) {
    let client = server.admin().await;
    let (mut revision, mut writes, mut handovers) =
        (raw(&client, "raw", 0, RECORD).await, Vec::new(), Vec::new());
    let mut pair = RawPair::start(server, "beside".to_owned()).await;
    for _ in 0..RAWS {
        let before = boot_now();
        revision = raw(&client, "raw", revision, RECORD).await;
        writes.push(boot_now().since(before));
        let handover = pair.handover().await;
        handovers.push(handover.release + handover.claim);
    }
    (median(writes), median(handovers))
}
