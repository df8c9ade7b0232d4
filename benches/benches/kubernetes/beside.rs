//! Ours beside kube-leader-election and kubert, on the same server. client-go is measured in the other measures.

use std::time::Duration;

use bellwether_benches::median;
use bellwether_benches::peers::contest::ACQUIRE;
use bellwether_benches::peers::{Contest, Make, Pair};
use bellwether_support::servers::kubernetes::Server;
use bellwether_support::servers::peers::{kube_leader_election, kubert};
use bellwether_support::{Actor, clock};

use crate::raw::{RawLease, RawPair};
use crate::stage::Namespace;

/// Ours has this by default, and kube-leader-election in its README.
const TTL: Duration = Duration::from_secs(15);
const EQUAL_TTL: Duration = Duration::from_secs(3);
const EQUAL_RENEW: Duration = Duration::from_secs(1);
const RAWS: usize = 50;

const NO_FENCE: &str = "theirs writes without the version that it read, and compares the clocks of machines: by its own README, two may lead for a \
     short time";
const CLOCKS: &str = "theirs compares the clocks of machines, and its followers are not told of a release: they look when the lease that they \
     saw has expired";

const CAUSES: &[(&str, &str)] =
    &[(ACQUIRE, "it also writes which epoch it has, and begins to watch the Lease before it claims")];

/// How long it takes to lead and to follow.
pub(crate) async fn beside(server: &Server) {
    let namespace = Namespace::of(server, "beside");
    let (acquire, handover) = raws(&namespace).await;
    let contest = Contest::new("kubernetes", pairs(&namespace), CAUSES);
    contest.acquire(acquire).await;
    contest.handover(handover).await;
    contest.failover().await;
}

/// What followers ask for.
pub(crate) async fn growth(server: &Server) {
    let namespace = Namespace::of(server, "growth");
    let count = async |_: &Make| namespace.requests() as u64;
    let contest = Contest::new("kubernetes", pairs(&namespace), CAUSES);
    contest.requests(count).await;
    contest.herd(count).await;
}

fn pairs(namespace: &Namespace<'_>) -> Vec<Pair> {
    let url = namespace.url();
    let ours = |ttl| Make::ours(&url, ttl);
    let simple = |set, ttl| Make::peer(&kube_leader_election(), &url, set, ttl).asking(ttl / 3).silent();
    let kubert = |set, ttl| Make::peer(&kubert(), &url, set, ttl).silent();
    vec![
        Pair {
            theirs: simple("as its README has it (ttl 15 s, every 5 s)", TTL),
            ours: ours(TTL),
            defaults: true,
            note: NO_FENCE,
        },
        Pair {
            theirs: simple("ttl 3 s, every 1 s", EQUAL_TTL).timed(EQUAL_RENEW),
            ours: ours(EQUAL_TTL),
            defaults: false,
            note: NO_FENCE,
        },
        Pair {
            theirs: kubert("its defaults (lease 30 s, renewed 1 s before its end)", Duration::from_secs(30)),
            ours: ours(TTL),
            defaults: true,
            note: CLOCKS,
        },
        Pair {
            theirs: kubert("lease 3 s, renewed every 1 s", EQUAL_TTL).timed(EQUAL_RENEW),
            ours: ours(EQUAL_TTL),
            defaults: false,
            note: CLOCKS,
        },
    ]
}

/// The medians of a PUT, and of a handover by the fewest requests.
async fn raws(namespace: &Namespace<'_>) -> (Duration, Duration) {
    let url = namespace.url();
    let actor = Actor::new(bellwether_kubernetes::from_url(&url, clock()).expect("a URL"), "a", TTL);
    let grant = actor.lead().await;
    actor.let_go(&grant).await;
    let mut pair = RawPair::start(namespace, "reports").await;
    let mut lease = RawLease::create(namespace, "raw-beside", "reports").await;
    let (mut puts, mut handovers) = (Vec::new(), Vec::new());
    for _ in 0..RAWS {
        let before = bellwether::boot_now();
        lease.put().await;
        puts.push(bellwether::boot_now().since(before));
        let handover = pair.handover().await;
        handovers.push(handover.release + handover.claim);
    }
    (median(puts), median(handovers))
}
