//! Candidates of others and ours on one lease, in the profile `cluster`: they exclude each other, whoever comes first and however
//! a leadership ends.

use std::time::Duration;

use crate::support::foreign::{Foreign, Held};
use crate::support::{CLUSTER, PATIENCE, TTL, actor, cluster};
use bellwether_core::{Boot, Grant, Holder, Outcome};
use bellwether_deadman::boot_now;
use bellwether_nats::Nats;
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{Actor, until};

/// Short, so that many rounds fit in a test.
const SHORT: Duration = Duration::from_millis(300);
const ROUNDS: usize = 20;

async fn acquired(foreign: &Foreign) -> Held {
    until(|| async { foreign.acquire().await.ok_or("the foreign node is kept out") }).await
}

#[tokio::test]
async fn a_release_lets_the_other_kind_in_at_once_with_a_greater_epoch() {
    for version in [Version::Current, Version::Old] {
        let server = Server::start(version).await;
        let ours = actor(&cluster(&server), "ours");
        let foreign = Foreign::new(&server, CLUSTER, "theirs", TTL).await;
        let grant = ours.lead().await;
        assert!(foreign.acquire().await.is_none(), "ours holds it");
        let grant = ours.keep(&grant).await;
        assert!(foreign.acquire().await.is_none(), "ours has renewed it");
        ours.let_go(&grant).await;
        let held = foreign.acquire().await.expect("a lease of nobody is free");
        assert_eq!(held.epoch, i64::try_from(grant.epoch.get()).unwrap() + 1);

        let seen = ours.denied().await;
        assert_eq!(seen.leader().map(|id| id.to_string()).as_deref(), Some("theirs"));
        let held = foreign.renew(&held).await.expect("nobody else has written");
        assert!(matches!(ours.renew(&grant).await, Outcome::Denied(_)), "what was let go is gone");
        ours.denied().await;
        let deleted = boot_now();
        foreign.step_down().await;
        let (next, at) = ours.lead_within(PATIENCE).await;
        assert!(at.since(deleted) >= TTL, "a deletion by hand looks the same, so it is waited for");
        assert!(next.epoch.get() > u64::try_from(held.epoch).unwrap(), "{next:?} after {held:?}");
        assert!(foreign.renew(&held).await.is_none(), "a stale renewal of theirs");
        assert_eq!(server.keys(CLUSTER).await, ["cooldown-theirs", "lease"], "theirs is left alone");
    }
}

#[tokio::test]
async fn a_foreign_node_that_steps_down_too_late_deletes_our_lease_and_nobody_of_ours_leads_beside_the_other()
{
    let server = Server::start(Version::Current).await;
    let (a, b) = (actor(&cluster(&server), "a"), actor(&cluster(&server), "b"));
    let grant = a.lead().await;
    b.denied().await;
    let stale = Foreign::new(&server, CLUSTER, "stale", TTL).await;
    let deleted = boot_now();
    stale.step_down().await;
    let (next, at) = b.lead_within(PATIENCE).await;
    assert!(at.since(deleted) >= TTL, "led {:?} after the deletion", at.since(deleted));
    assert!(matches!(a.renew(&grant).await, Outcome::Denied(_)), "what was deleted is gone");
    assert!(next.epoch > grant.epoch);
    assert!(stale.acquire().await.is_none(), "ours holds it");
}

#[tokio::test]
async fn a_foreign_node_with_our_leader_s_id_takes_the_lease_and_ours_is_over() {
    let server = Server::start(Version::Current).await;
    let (a, b) = (actor(&cluster(&server), "twin"), actor(&cluster(&server), "b"));
    let grant = a.lead().await;
    let mut news = b.news();
    b.denied().await;
    let twin = Foreign::new(&server, CLUSTER, "twin", TTL).await;
    let held = twin.acquire().await.expect("what has its id is its own");
    assert_eq!(held.epoch, i64::try_from(grant.epoch.get()).unwrap(), "by force, and under the same epoch");
    // No incarnation: it is not taken for ours.
    let foreign = |holder: &Holder| holder.id.as_str() == "twin" && holder.incarnation.is_none();
    news.until_seen(|seen| seen.holder.as_ref().is_some_and(foreign)).await;
    assert!(matches!(a.renew(&grant).await, Outcome::Denied(_)), "two would lead under one id");
    a.denied().await;
    let held = twin.renew(&held).await.expect("nobody else has written");
    let (next, at) = b.lead_within(PATIENCE).await;
    assert!(at >= held.until && next.epoch > grant.epoch);
}

#[tokio::test]
async fn a_foreign_leader_that_renews_is_never_deposed_and_a_silent_one_is_after_a_ttl() {
    let server = Server::start(Version::Current).await;
    let ours = actor(&cluster(&server), "ours");
    // It makes the bucket.
    let grant = ours.lead().await;
    ours.let_go(&grant).await;
    let foreign = Foreign::new(&server, CLUSTER, "theirs", TTL).await;
    let mut held = foreign.acquire().await.expect("free");
    for _ in 0..4 {
        tokio::time::sleep(TTL / 2).await;
        ours.denied().await;
        held = foreign.renew(&held).await.expect("nobody else has written");
        ours.denied().await;
    }
    let (next, now) = ours.lead_within(PATIENCE).await;
    assert!(now >= held.until, "deposed {:?} too early", held.until.since(now));
    assert!(i64::try_from(next.epoch.get()).unwrap() > held.epoch);
}

#[tokio::test]
async fn a_silent_leader_of_ours_is_deposed_by_foreign_nodes_two_ttls_after_its_last_renewal() {
    let server = Server::start(Version::Current).await;
    let ours = actor(&cluster(&server), "ours");
    let grant = ours.lead().await;
    let grant = ours.keep(&grant).await;
    let foreign = Foreign::new(&server, CLUSTER, "theirs", TTL).await;
    let held = acquired(&foreign).await;
    let end = grant.counted_from + 2 * TTL;
    assert!(boot_now() >= end);
    // By the clock, or because the bucket had forgotten the record just then.
    let next = i64::try_from(grant.epoch.get()).unwrap() + 1;
    assert!(held.epoch == next || held.epoch == 1, "{held:?} after {grant:?}");
    assert!(matches!(ours.renew(&grant).await, Outcome::Denied(_)));
}

#[tokio::test]
async fn nobodys_clock_is_believed_here() {
    let server = Server::start(Version::Current).await;
    let first = actor(&cluster(&server), "first");
    let grant = first.lead().await;
    first.let_go(&grant).await;
    for hours in [-1, 1] {
        let mut foreign = Foreign::new(&server, CLUSTER, "theirs", TTL).await;
        foreign.ahead_ms = hours * 3_600_000;
        let held = foreign.acquire().await.expect("a lease of nobody is free by every clock");
        let ours = actor(&cluster(&server), "ours");
        ours.denied().await;
        let held = foreign.renew(&held).await.expect("nobody else has written");
        let (grant, now) = ours.lead_within(PATIENCE).await;
        assert!(now >= held.until, "{hours} h: in {:?} too early", held.until.since(now));
        ours.let_go(&grant).await;
    }
}

#[tokio::test]
async fn a_foreign_clock_that_is_ahead_by_less_than_a_ttl_deposes_nobody() {
    let server = Server::start(Version::Current).await;
    let ours = actor(&cluster(&server), "ours");
    let mut grant = ours.lead().await;
    let mut foreign = Foreign::new(&server, CLUSTER, "theirs", TTL).await;
    foreign.ahead_ms = i64::try_from(TTL.as_millis()).unwrap() * 4 / 5;
    for _ in 0..4 {
        grant = ours.keep(&grant).await;
        let next = boot_now() + TTL / 3;
        while boot_now() < next {
            assert!(foreign.acquire().await.is_none(), "deposed a leader that renews");
            tokio::time::sleep(TTL / 40).await;
        }
    }
}

/// Who believed to lead, from when to when.
type Beliefs = Vec<(&'static str, Boot, Boot)>;

/// Leads, renews twice, and ends by release or by silence. The end of belief comes before the release is sent.
async fn hold_ours(ours: &Actor<Nats>, mut grant: Grant, from: Boot, release: bool, beliefs: &mut Beliefs) {
    let belief = |grant: &Grant| grant.counted_from + grant.ttl * 9 / 10;
    for _ in 0..2 {
        tokio::time::sleep(SHORT / 4).await;
        match ours.renew(&grant).await {
            Outcome::Done(renewed) => grant = renewed,
            // A machine this slow has lost the lease in between; belief ended by itself.
            _ => return beliefs.push(("ours", from, belief(&grant))),
        }
    }
    let end = if release { boot_now() } else { belief(&grant) };
    beliefs.push(("ours", from, end.min(belief(&grant))));
    if release {
        ours.let_go(&grant).await;
    }
}

async fn hold_theirs(theirs: &Foreign, mut held: Held, from: Boot, release: bool, beliefs: &mut Beliefs) {
    for _ in 0..2 {
        tokio::time::sleep(SHORT / 4).await;
        match theirs.renew(&held).await {
            Some(renewed) => held = renewed,
            None => return beliefs.push(("theirs", from, held.until)),
        }
    }
    let end = if release { boot_now() } else { held.until };
    beliefs.push(("theirs", from, end.min(held.until)));
    if release {
        theirs.step_down().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_rounds_of_handover_and_failover_have_no_overlap() {
    let server = Server::start(Version::Current).await;
    let mut ours = actor(&cluster(&server), "ours");
    ours.bid.ttl = SHORT;
    let theirs = Foreign::new(&server, CLUSTER, "theirs", SHORT).await;
    let mut beliefs = Beliefs::new();
    let mut grant = ours.lead().await;
    let mut from = boot_now();
    for round in 0..ROUNDS / 2 {
        // Released twice, silent twice, so that both kinds end both ways; the other tries all the time.
        let release = round % 4 < 2;
        let ((), (held, taken)) = tokio::join!(hold_ours(&ours, grant, from, release, &mut beliefs), async {
            let held = acquired(&theirs).await;
            (held, boot_now())
        },);
        let release = round % 4 == 0 || round % 4 == 3;
        let ((), (next, taken_back)) = tokio::join!(
            hold_theirs(&theirs, held, taken, release, &mut beliefs),
            ours.lead_within(PATIENCE),
        );
        (grant, from) = (next, taken_back);
    }
    assert_eq!(beliefs.len(), ROUNDS);
    for pair in beliefs.windows(2) {
        let ((who, _, end), (next, start, _)) = (pair[0], pair[1]);
        assert_ne!(who, next);
        assert!(end <= start, "{who} believed for {:?} while {next} led", end.since(start));
    }
}
