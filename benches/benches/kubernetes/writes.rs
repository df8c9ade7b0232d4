//! Renewals and claims beside the raw PUT, in turn on the same server; and the first claim of all beside client-go's.

use std::time::Duration;

use bellwether::{Election, Store, boot_now};
use bellwether_benches::{Row, median, percentile, progress, report};
use bellwether_kubernetes::from_url;
use bellwether_support::servers::kubernetes::Server;
use bellwether_support::{Actor, clock};

use crate::raw::RawLease;
use crate::stage::{Namespace, client_go_name, ratio, times};

const TTL: Duration = Duration::from_secs(15);
const WRITES: usize = 500;
const FIRST_CLAIMS: usize = 50;

pub(crate) async fn writes(server: &Server) {
    let namespace = Namespace::of(server, "writes");
    progress(&format!("writing a Lease {WRITES} times in each way"));
    // An Event is written beside what comes next, which would seem slower by that.
    let url = format!("{}&events=no", namespace.url());
    let actor = Actor::new(from_url(&url, clock()).expect("a URL"), "a", TTL);
    let grant = actor.lead().await;
    actor.let_go(&grant).await;
    let mut lease = RawLease::create(&namespace, "raw", "reports").await;
    let (mut claims, mut renewals, mut raws) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..WRITES {
        let start = boot_now();
        let grant = actor.lead().await;
        let led = boot_now();
        let grant = actor.keep(&grant).await;
        let renewed = boot_now();
        actor.let_go(&grant).await;
        let before = boot_now();
        lease.put().await;
        raws.push(boot_now().since(before));
        claims.push(led.since(start));
        renewals.push(renewed.since(led));
    }
    let raw = median(raws.clone());
    for (what, all) in [("renewal", renewals), ("claim after a release, which reads first", claims)] {
        let (took, p99) = (median(all.clone()), percentile(all, 0.99));
        let note = format!("median of {WRITES} {took:.2?}, p99 {p99:.2?}");
        report(&format!("{what}, ratio to the raw PUT"), &format!("{:.2}", ratio(took, raw)), &note);
    }
    let p99 = percentile(raws, 0.99);
    report(&format!("raw PUT, median of {WRITES}"), &format!("{raw:.2?}"), &format!("p99 {p99:.2?}"));
    first_claims(&namespace, raw).await;
}

/// Where there is no Lease yet, on a connection that is open.
async fn first_claims(namespace: &Namespace<'_>, raw: Duration) {
    progress(&format!("making {FIRST_CLAIMS} Leases, ours and client-go's"));
    let store = Store::from(from_url(&namespace.url(), clock()).expect("a URL"));
    store.elections().await.expect("an answer");
    let mut took = Vec::new();
    for round in 0..FIRST_CLAIMS {
        let builder = Election::builder(format!("first-{round}")).backend(store.clone()).id("a").ttl(TTL);
        let start = boot_now();
        let election = builder.start().await.expect("a start");
        election.wait_for_leadership().await.expect("a leadership");
        took.push(boot_now().since(start));
        election.stop().await.expect("a release");
    }
    let (ours, theirs) = (median(took), {
        let rounds = FIRST_CLAIMS.to_string();
        median(times(&namespace.client_go("acquire", &["--rounds", &rounds])))
    });
    Row::time("kubernetes", "acquire, uncontended", ours)
        .set("ttl 15 s")
        .raw(raw)
        .peer(client_go_name(), theirs.as_secs_f64())
        .note(format!(
            "where there is no Lease yet; medians of {FIRST_CLAIMS}; the raw operation is a PUT of a Lease"
        ))
        .print();
}
