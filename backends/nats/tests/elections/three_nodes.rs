//! Three servers: handing over, and the loss of one, of the one that leads the bucket's stream, and of all of them in turn.

use std::time::Duration;

use crate::support::{BUCKET, PATIENCE};
use bellwether_backend::Backend;
use bellwether_core::{Boot, Epoch, Grant, Outcome, ReleaseOptions, Signal};
use bellwether_deadman::boot_now;
use bellwether_election::Election;
use bellwether_nats::{Nats, from_url};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{Actor, clock, until};
use serde_json::json;

const TTL: Duration = Duration::from_secs(15);
const RENEWAL: Duration = Duration::from_millis(500);

fn actor(servers: &[Server], id: &str, ttl: Duration) -> Actor<Nats> {
    let url = format!("{}?create=yes&replicas=3", Server::url_of_all(servers));
    Actor::new(from_url(&url, clock()).unwrap(), id, ttl)
}

/// Who leads the stream of the elections, by its place in the list.
async fn stream_leader(servers: &[Server], asked: usize) -> usize {
    leader_of(BUCKET, servers, asked).await
}

/// Who leads the stream of a bucket; asks again until one does.
async fn leader_of(bucket: &str, servers: &[Server], asked: usize) -> usize {
    until(|| async {
        let info = servers[asked].asked(&format!("STREAM.INFO.KV_{bucket}"), json!({})).await?;
        let leader = info["cluster"]["leader"].as_str().and_then(|name| name.strip_prefix('n'));
        leader.and_then(|number| number.parse().ok()).ok_or_else(|| format!("no leader: {info}"))
    })
    .await
}

/// Until every replica of the stream is there and has caught up.
async fn whole(servers: &[Server], asked: usize) {
    until(|| async {
        let info = servers[asked].asked(&format!("STREAM.INFO.KV_{BUCKET}"), json!({})).await?;
        let replicas = info["cluster"]["replicas"].as_array().cloned().unwrap_or_default();
        let current = replicas.iter().filter(|replica| replica["current"] == true).count();
        let whole = info["cluster"]["leader"].is_string() && current + 1 == servers.len();
        if whole { Ok(()) } else { Err(format!("a replica does not come back: {info}")) }
    })
    .await;
}

/// Renews until then; the longest time that went by without a renewal. Any denial, and a whole ttl without one, fails.
async fn kept_until(a: &Actor<Nats>, grant: &mut Grant, by: Boot) -> Duration {
    let mut longest = Duration::ZERO;
    while boot_now() < by {
        match a.renew(grant).await {
            Outcome::Done(renewed) => {
                longest = longest.max(renewed.counted_from.since(grant.counted_from));
                *grant = renewed;
            }
            Outcome::Unknown(_) => {}
            other => panic!("a transient error ended a leadership: {other:?}"),
        }
        assert!(boot_now().since(grant.counted_from) < TTL, "no renewal for a whole ttl");
        tokio::time::sleep(RENEWAL).await;
    }
    longest
}

async fn survives_the_loss_of_the_stream_s_leader(version: Version) {
    let mut servers = Server::cluster(version, 3).await;
    let (a, b) = (actor(&servers, "a", TTL), actor(&servers, "b", TTL));
    let (mut grant, _) = a.lead_within(PATIENCE).await;
    let mut news = b.news();
    b.denied().await;
    let lost = stream_leader(&servers, 0).await;
    servers[lost].down("KILL");
    // Longer than a ttl, so that a leadership which only ran on would have ended.
    let longest = kept_until(&a, &mut grant, boot_now() + TTL + Duration::from_secs(1)).await;
    println!("{version:?}: longest time without a renewal: {longest:?}");
    let seen = b.denied().await;
    assert_eq!(seen.leader(), Some(&a.bid.who.id));
    // The follower hears again, by whichever server.
    a.let_go(&grant).await;
    news.until(|signal| matches!(signal, Signal::Changed(seen) if seen.holder.is_none())).await;
    let next = b.lead().await;
    assert!(next.epoch > grant.epoch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_survives_the_loss_of_the_stream_s_leader() {
    survives_the_loss_of_the_stream_s_leader(Version::Current).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_survives_the_loss_of_the_stream_s_leader_on_debians_servers() {
    survives_the_loss_of_the_stream_s_leader(Version::Old).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_server_is_restarted_in_turn_and_there_are_never_two() {
    let mut servers = Server::cluster(Version::Current, 3).await;
    let (a, b) = (actor(&servers, "a", TTL), actor(&servers, "b", TTL));
    let (mut grant, _) = a.lead_within(PATIENCE).await;
    let mut news = b.news();
    let mut last = Epoch::ZERO;
    for at in 0..servers.len() {
        assert!(grant.epoch > last, "{:?} followed {last:?}", grant.epoch);
        last = grant.epoch;
        servers[at].down(if at == 1 { "KILL" } else { "TERM" });
        // While one is away, the leader goes on and the follower is told so.
        let longest = kept_until(&a, &mut grant, boot_now() + Duration::from_secs(4)).await;
        println!("server {at} away: longest time without a renewal: {longest:?}");
        let kept_out = async {
            loop {
                match b.claim().await {
                    Outcome::Denied(seen) => return seen,
                    Outcome::Unknown(_) => {}
                    other => panic!("two leaders: {other:?}"),
                }
            }
        };
        assert!(tokio::time::timeout(PATIENCE, kept_out).await.expect("an answer").is_held_by(&a.bid.who));
        servers[at].up().await;
        whole(&servers, at).await;
        // Hand over to oneself, so that every server has seen an epoch of its own.
        let released = async {
            while !matches!(
                a.backend.release(&a.on, &grant, &ReleaseOptions::default()).await,
                Outcome::Done(())
            ) {
                tokio::time::sleep(RENEWAL).await;
            }
        };
        tokio::time::timeout(PATIENCE, released).await.expect("a release");
        news.until_seen(|seen| seen.holder.is_none()).await;
        grant = a.lead_within(PATIENCE).await.0;
        news.until_seen(|seen| seen.epoch == Some(grant.epoch)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_is_followed_within_moments_also_without_one_server() {
    const HANDOVERS: usize = 50;
    let mut servers = Server::cluster(Version::Current, 3).await;
    let (a, b) = (actor(&servers, "a", TTL), actor(&servers, "b", TTL));
    let (mut grant, _) = a.lead_within(PATIENCE).await;
    // Not the stream's leader, so that writing goes on.
    let lost = (stream_leader(&servers, 0).await + 1) % servers.len();
    servers[lost].down("KILL");
    grant = {
        kept_until(&a, &mut grant, boot_now() + Duration::from_secs(2)).await;
        grant
    };
    let mut both = [(&a, a.news()), (&b, b.news())];
    let mut times = Vec::new();
    for _ in 0..HANDOVERS {
        let [(leader, _), (follower, news)] = &mut both;
        news.until_seen(|seen| seen.epoch == Some(grant.epoch) && seen.holder.is_some()).await;
        let start = boot_now();
        let heard = async {
            news.until_seen(|seen| seen.holder.is_none()).await;
            follower.lead_within(PATIENCE).await.0
        };
        let ((), next) = tokio::join!(leader.let_go(&grant), heard);
        times.push(boot_now().since(start));
        assert!(next.epoch > grant.epoch);
        grant = next;
        both.reverse();
    }
    times.sort();
    println!("handover: median {:?}, longest {:?}", times[HANDOVERS / 2], times[HANDOVERS - 1]);
    // For a machine that is ten times slower, and busy.
    assert!(times[HANDOVERS / 2] < Duration::from_millis(400), "{times:?}");
}

/// Past leaderships on one server, which is away, and elections on three.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notes_that_are_out_of_reach_keep_nobody_from_leading() {
    let mut servers = Server::cluster(Version::Current, 3).await;
    servers[0].bucket(BUCKET, json!({})).await;
    servers[0].bucket("leaders", json!({ "num_replicas": 3 })).await;
    let lost = leader_of(BUCKET, &servers, 0).await;
    servers[lost].down("KILL");
    let url = format!("{}?profile=leader&bucket=leaders", Server::url_of_all(&servers));
    let candidate = |id| Actor::new(from_url(&url, clock()).unwrap(), id, TTL);
    // Until elections can be held again, so that only the notes are silent.
    let first = Actor { on: bellwether_support::election("first"), ..candidate("first") };
    let _ = first.lead_within(PATIENCE).await;
    let mut a = candidate("a");
    a.bid.cooldown = Some(TTL);
    let start = boot_now();
    let grant = a.lead().await;
    println!("a claim that looks for a cooldown in vain took {:?}", boot_now().since(start));
    let past = bellwether_backend::Past {
        epoch: grant.epoch,
        id: a.bid.who.id.clone(),
        incarnation: Some(a.bid.who.incarnation),
        since: bellwether_core::Wall::default(),
        until: None,
        ended: None,
    };
    let (missed, kept) = tokio::join!(a.backend.remember(&a.on, &past), a.renew(&grant));
    assert!(missed.as_ref().is_err_and(bellwether_core::StoreError::is_retryable), "{missed:?}");
    assert!(matches!(kept, Outcome::Done(_)), "{kept:?}");
    let how = ReleaseOptions { reserve_for: None, cooldown: Some(TTL) };
    let released = a.backend.release(&a.on, &grant, &how).await;
    assert!(matches!(released, Outcome::Done(())), "{released:?}");
    assert!(candidate("b").lead().await.epoch > grant.epoch);
}

/// With `profile=cluster` each election has a bucket. Making many at once takes the servers a while, and they may not find for a moment
/// what they have just made: nobody is turned away for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_that_make_their_buckets_at_once_all_lead() {
    const ROUNDS: usize = 3;
    const AT_ONCE: usize = 20;
    let servers = Server::cluster(Version::Current, 3).await;
    let url = format!("{}?profile=cluster&create=yes&replicas=3", Server::url_of_all(&servers));
    for round in 0..ROUNDS {
        let all = (0..AT_ONCE).map(|number| {
            let backend = from_url(&url, clock()).unwrap();
            let election = Election::builder(format!("job-{round}-{number}")).backend(backend).id("a");
            async move {
                let election =
                    election.ttl(crate::support::TTL).start().await.expect("nothing is wrong with it");
                let leads = tokio::time::timeout(4 * PATIENCE, election.wait_for_leadership()).await;
                leads.expect("the servers are done at some time").expect("nobody else wants it");
                election.stop().await.expect("it is there")
            }
        });
        futures_util::future::join_all(all).await;
    }
}
