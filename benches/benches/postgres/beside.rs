//! Ours beside pglock and River's leadership, on the same servers.

use std::time::Duration;

use bellwether_benches::peers::contest::{ACQUIRE, CONNECTIONS, REQUESTS};
use bellwether_benches::peers::{Contest, Make, Pair};
use bellwether_benches::{median, progress};
use bellwether_support::servers::peers::{pglock, river};
use bellwether_support::servers::postgres::Server;

use crate::raw::{RawClaims, RawPair};

const STORE: &str = "postgres";
/// Ours has this by default.
const TTL: Duration = Duration::from_secs(15);
/// For all that can be set.
const EQUAL_TTL: Duration = Duration::from_secs(3);
const EQUAL_RENEW: Duration = Duration::from_secs(1);
/// Ours leads on a server that has been up for longer than a ttl.
const QUIET: Duration = Duration::from_secs(15);
/// A hundred followers are up to four sessions each.
const SESSIONS: &str = "max_connections=1000";
/// Of ours, in one process: more would take too much of the server's lock table.
const ELECTIONS_MAX: usize = 1_000;
const RAWS: usize = 100;
const RAW_HANDOVERS: usize = 30;

const LEASES: &str = "theirs is a lease, so a dead leader is followed when it has expired; ours is a lock of the session, which ends with its process";
const RIVERS: &str = "theirs is kept in an unlogged table: no claim waits for the disk, and a crash of the server forgets who leads; its timing cannot \
     be set; its statements about leadership are counted, and not those of its job queue";

const CAUSES: &[(&str, &str)] = &[
    (ACQUIRE, "every claim waits for the disk, so that its epoch survives a crash of the server"),
    (
        REQUESTS,
        "its followers wait on the server for the end of the leader's session, 0.9 s at a time, and look at every retry interval: so a dead \
         leader is followed in milliseconds, and not when a lease has expired",
    ),
    (CONNECTIONS, "it has a second session, which tells and hears, whatever the number of elections"),
];

/// How long it takes to lead and to follow.
pub(crate) async fn beside() {
    progress("starting a server");
    let server = Server::start_with(QUIET, None, &[SESSIONS]).await;
    let (acquire, handover) = raws(&server).await;
    let contest = Contest::new(STORE, pairs(&server), CAUSES);
    contest.acquire(acquire).await;
    contest.handover(handover).await;
    contest.failover().await;
    contest.is_leader().await;
}

/// What followers and elections cost.
pub(crate) async fn growth() {
    progress("starting a server, and one that logs every statement");
    let (server, logs) = tokio::join!(
        Server::start_with(QUIET, None, &[SESSIONS]),
        Server::start_with(QUIET, None, &[SESSIONS, "log_statement=all"]),
    );
    let count = async |make: &Make| statements(&logs.log(), about(make));
    let counted = Contest::new(STORE, pairs(&logs), CAUSES);
    counted.requests(count).await;
    counted.herd(count).await;
    Contest::new(STORE, pairs(&server), CAUSES).many().await;
}

fn pairs(server: &Server) -> Vec<Pair> {
    let (url, theirs) = (server.url(), format!("{}?sslmode=disable", server.url()));
    let ours = |ttl| Make::ours(&url, ttl).at_most(ELECTIONS_MAX);
    let lease = Duration::from_secs(20);
    let defaults = Make::peer(&pglock(), &theirs, "its defaults (lease 20 s, heartbeat 5 s)", lease);
    let equal = Make::peer(&pglock(), &theirs, "lease 3 s, heartbeat 1 s", EQUAL_TTL).timed(EQUAL_RENEW);
    // A client of it needs sessions for each election.
    let river = Make::peer(&river(), &theirs, "its defaults (ttl 15 s, renewed every 5 s)", TTL);
    vec![
        Pair { theirs: defaults, ours: ours(TTL), defaults: true, note: LEASES },
        Pair { theirs: equal, ours: ours(EQUAL_TTL), defaults: false, note: LEASES },
        Pair { theirs: river.told().silent().at_most(1), ours: ours(TTL), defaults: true, note: RIVERS },
    ]
}

/// The medians of a claim and of a handover by the fewest statements.
async fn raws(server: &Server) -> (Duration, Duration) {
    let (raw, mut pair) = (RawClaims::start(server).await, RawPair::start(server).await);
    let (mut claims, mut handovers) = (Vec::new(), Vec::new());
    for _ in 0..RAWS {
        claims.push(raw.claim().await);
    }
    for _ in 0..RAW_HANDOVERS {
        let handover = pair.handover().await;
        handovers.push(handover.release + handover.claim);
    }
    (median(claims), median(handovers))
}

/// What the statements of this make about leadership name, if it makes others too.
fn about(make: &Make) -> Option<&'static str> {
    make.name.starts_with("River").then_some("river_leader")
}

/// Statements in the server's log, each of which may take several lines.
fn statements(log: &str, about: Option<&str>) -> u64 {
    let entries =
        log.split("LOG:  ").filter(|entry| entry.starts_with("execute") || entry.starts_with("statement"));
    entries.filter(|entry| about.is_none_or(|about| entry.contains(about))).count() as u64
}
