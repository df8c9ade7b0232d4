//! The testing matrix of the profile `leader`: what the network and the servers can do to a leader. The row "network partition" with
//! processes in network namespaces is `tests/nats/leader/partition.rs`; here what was sent into the silence arrives afterwards.

use std::time::Duration;

use crate::support::other::Other;
use crate::support::stage::{Judge, LEASE, candidate, leads, soon};
use crate::support::{leaders, server_for_leaders};
use bellwether_core::{Reason, StateName};
use bellwether_deadman::boot_now;
use bellwether_election::What;
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{Proxy, proxy_to};

const RENEW: Duration = Duration::from_millis(300);

/// A server, and a way to it that can be tampered with.
async fn behind_a_proxy() -> (Server, Proxy) {
    let server = server_for_leaders(Version::Current, LEASE).await;
    let proxy = proxy_to(server.port()).await;
    (server, proxy)
}

#[tokio::test]
async fn a_leader_that_is_cut_off_silently_is_over_before_another_leads() {
    let (server, proxy) = behind_a_proxy().await;
    let judge = Judge::default();
    let a = judge.start(candidate(&leaders(proxy.port()), "a")).await;
    let first = leads(&a).await;
    let b = judge.start(candidate(&leaders(server.port()), "b")).await;
    soon(b.wait_until(|status| status.leader.is_some())).await.unwrap();
    proxy.silence();
    let second = leads(&b).await;
    assert!(!a.is_leader() && !first.is_valid());
    assert!(second.epoch() > first.epoch());
    // What it had sent arrives now, and does no harm.
    proxy.heal();
    soon(a.wait_until(|status| status.leader.as_ref() == Some(b.id()))).await.unwrap();
    for _ in 0..2 {
        let before = b.status().last_success;
        soon(b.wait_until(|status| status.last_success > before)).await.unwrap();
    }
    assert!(second.is_valid() && b.is_leader() && !a.is_leader());
    assert_eq!(judge.verdict(), 2);
}

#[tokio::test]
async fn a_leader_whose_answers_are_slow_leads_on_and_one_whose_update_conflicts_does_not() {
    let second = Duration::from_secs(1);
    let server = server_for_leaders(Version::Current, 12 * second).await;
    let proxy = proxy_to(server.port()).await;
    let judge = Judge::default();
    // A connection that answers late is not one that is gone.
    let url = leaders(proxy.port()).replace("ping=200ms", "ping=5s").replace("timeout=500ms", "timeout=5s");
    let a = judge.start(candidate(&url, "a").ttl(12 * second).renew_interval(second)).await;
    let first = leads(&a).await;
    // Longer than a renewal may take before the next one is sent after it.
    proxy.slow(second);
    judge.heard("a", |what| matches!(what, What::Error(_))).await;
    let slow = boot_now();
    soon(a.wait_until(|status| status.last_success.is_some_and(|at| at > slow))).await.unwrap();
    assert!(
        first.is_valid() && first.remaining() < 11 * second,
        "late answers count from when they were asked for"
    );
    Other::new(&server, "hand").await.put(r#"{"id":"hand","token":"t"}"#).await;
    let (_, reason) = judge.lost("a").await;
    assert_eq!(reason, Reason::Conflict);
    assert!(!first.is_valid());
    judge.verdict();
}

#[tokio::test]
async fn a_lost_connection_ends_the_leadership_after_the_grace_and_not_before() {
    let (_server, proxy) = behind_a_proxy().await;
    let judge = Judge::default();
    let grace = 3 * RENEW;
    let a = judge.start(candidate(&leaders(proxy.port()), "a").disconnect_grace(grace)).await;
    let first = leads(&a).await;
    // A short one is borne.
    proxy.cut();
    tokio::time::sleep(RENEW / 3).await;
    proxy.heal();
    let before = a.status().last_success;
    soon(a.wait_until(|status| status.last_success > before)).await.unwrap();
    tokio::time::sleep(grace).await;
    assert!(first.is_valid(), "it was back in time");
    let cut = boot_now();
    proxy.cut();
    let (lost, reason) = judge.lost("a").await;
    assert_eq!(reason, Reason::Connection);
    let What::Lost { deadline, .. } = lost.what else { unreachable!("a loss") };
    assert!(
        lost.boot.since(cut) >= grace - Duration::from_millis(50),
        "{:?} after the cut",
        lost.boot.since(cut)
    );
    assert!(lost.boot < deadline, "the grace was shorter than the rest of the lease");
    proxy.heal();
    let second = leads(&a).await;
    assert!(second.epoch() > first.epoch());
    judge.verdict();
}

#[tokio::test]
async fn a_grace_longer_than_the_lease_does_not_outlive_the_deadline() {
    let (_server, proxy) = behind_a_proxy().await;
    let judge = Judge::default();
    let a = judge.start(candidate(&leaders(proxy.port()), "a").disconnect_grace(10 * LEASE)).await;
    let first = leads(&a).await;
    proxy.cut();
    let end = boot_now() + LEASE;
    let (lost, reason) = judge.lost("a").await;
    assert_eq!(reason, Reason::Deadline);
    assert!(lost.boot < end && !first.is_valid(), "believed for longer than a lease from the last renewal");
    judge.verdict();
}

#[tokio::test]
async fn renewals_that_fail_in_a_row_end_the_leadership_early_where_that_is_wanted() {
    let (_server, proxy) = behind_a_proxy().await;
    let judge = Judge::default();
    let a = judge.start(candidate(&leaders(proxy.port()), "a").failed_renewals(2)).await;
    leads(&a).await;
    proxy.silence();
    // A renewal that hangs is one that failed.
    let (lost, reason) = judge.lost("a").await;
    assert_eq!(reason, Reason::Connection);
    let What::Lost { deadline, .. } = lost.what else { unreachable!("a loss") };
    assert!(lost.boot < deadline);
}

#[tokio::test]
async fn while_the_server_is_away_one_attempt_at_a_time_is_made_with_growing_pauses_and_the_breaker() {
    let (_server, proxy) = behind_a_proxy().await;
    let judge = Judge::default();
    let breaker = bellwether_core::Breaker { failures: 4, open_for: 2 * LEASE };
    let builder = candidate(&leaders(proxy.port()), "a").breaker(breaker);
    proxy.cut();
    let a = judge.start(builder).await;
    let begins = |event: &bellwether_election::Event| {
        matches!(event.what, What::StateChanged { to: StateName::Acquiring, .. })
    };
    let ends = |event: &bellwether_election::Event| {
        matches!(event.what, What::StateChanged { from: StateName::Acquiring, .. })
    };
    soon(a.wait_until(|status| status.attempts >= 4)).await.unwrap();
    tokio::time::sleep(LEASE).await;
    assert_eq!(a.status().attempts, 4, "the breaker is open");
    assert!(judge.count(begins) <= judge.count(ends) + 1, "attempts overlap");
    proxy.heal();
    leads(&a).await;
    assert_eq!(a.status().attempts, 5, "one attempt is let through, and one is enough");
    judge.verdict();
}

#[tokio::test]
async fn through_a_restart_of_the_server_the_lead_is_kept_or_won_again_with_a_higher_epoch() {
    let at_once = Duration::ZERO;
    tokio::join!(restart(at_once, "TERM"), restart(at_once, "KILL"), restart(LEASE + RENEW, "KILL"));
}

async fn restart(away: Duration, signal: &str) {
    let mut server = server_for_leaders(Version::Current, 2 * LEASE).await;
    let judge = Judge::default();
    let url = leaders(server.port());
    let all = [judge.start(candidate(&url, "a")).await, judge.start(candidate(&url, "b")).await];
    let before = crate::support::stage::one_leads(&all).await;
    let first = leads(&all[before]).await;
    server.down(signal);
    tokio::time::sleep(away).await;
    server.up().await;
    let mut after = crate::support::stage::one_leads(&all).await;
    // Somebody leads who has renewed since.
    let back = boot_now();
    soon(async {
        while all[after].status().last_success.is_none_or(|at| at < back) || !all[after].is_leader() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            after = crate::support::stage::one_leads(&all).await;
        }
    })
    .await;
    let second = leads(&all[after]).await;
    assert!(second.epoch() >= first.epoch());
    assert!(away.is_zero() || second.epoch() > first.epoch(), "nobody keeps a lead over {away:?}");
    judge.verdict();
}
