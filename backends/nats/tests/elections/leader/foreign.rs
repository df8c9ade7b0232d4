//! Candidates of others and ours on one key, in the profile `leader`: they exclude each other, whoever comes first and however
//! a leadership ends; and whatever else may lie under the key does no harm.

use std::time::Duration;

use crate::support::other::{Holds, Other};
use crate::support::stage::{Judge, candidate, leads, soon};
use crate::support::{KEY, LEADERS, PATIENCE, TTL, actor, aged, leaders, server_for_leaders};
use bellwether_backend::{Backend, Discarded};
use bellwether_core::{Ask, Boot, Epoch, ErrorKind, Outcome, Proof, Reason, Request};
use bellwether_deadman::boot_now;
use bellwether_election::What;
use bellwether_nats::Nats;
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{Actor, election, until};
use serde_json::json;

/// Short, so that many rounds fit in a test.
const SHORT: Duration = Duration::from_millis(500);
/// A round of theirs and ours; longer than a machine under load stands still.
const ROUND: Duration = Duration::from_millis(700);
/// So long that what happens before the next renewal does not depend on how busy the machine is.
const LONG: Duration = Duration::from_secs(60);

fn ours(server: &Server, id: &str, ttl: Duration) -> Actor<Nats> {
    let mut actor = actor(&leaders(server.port()), id);
    actor.bid.ttl = ttl;
    actor
}

/// As followers of that kind do on every word of the watch, only without the pause.
async fn created(other: &Other) -> Holds {
    until(|| async { other.create().await.ok_or("the key is still there") }).await
}

/// Until nothing is left under the key, not even a mark.
async fn nothing_left(other: &Other) {
    until(|| async {
        let left = other.get().await.revision;
        if left == 0 { Ok(()) } else { Err(format!("revision {left} is still there")) }
    })
    .await;
}

#[tokio::test]
async fn each_sees_the_other_and_a_release_of_ours_lets_them_in_at_once() {
    tokio::join!(sees_each_other(Version::Current), sees_each_other(Version::Old));
}

async fn sees_each_other(version: Version) {
    let server = server_for_leaders(version, TTL).await;
    let (a, mut other) = (ours(&server, "a", TTL), Other::new(&server, "other").await);
    let grant = a.lead().await;
    assert!(other.create().await.is_none(), "ours holds it");
    let grant = a.keep(&grant).await;
    let seen = other.get().await.value.expect("a record");
    assert_eq!((seen["id"].as_str(), seen["priority"].as_i64()), (Some("a"), Some(0)), "{seen}");
    let token = seen["token"].clone();
    a.keep(&grant).await;
    assert_eq!(other.get().await.value.expect("a record")["token"], token, "one token a leadership");
    a.let_go(&grant).await;
    let holds = other.create().await.expect("a deleted key is free");
    let seen = a.denied().await;
    assert_eq!(seen.leader().map(|id| id.as_str()), Some("other"));
    assert_eq!((seen.epoch, seen.priority), (None, None));
    assert_eq!(seen.ttl, Some(TTL), "others go by the bucket's max age");
    assert!(matches!(a.renew(&grant).await, Outcome::Denied(_)), "what was let go is gone");
    other.priority = 10;
    let holds = other.update(&holds).await.expect("nobody else has written");
    assert_eq!(a.denied().await.priority, Some(10));
    let deleted = boot_now();
    other.delete().await;
    let (next, at) = a.lead_within(PATIENCE).await;
    assert!(at.since(deleted) >= TTL, "a deletion by hand looks the same, so it is waited for");
    assert!(next.epoch > grant.epoch);
    assert!(other.update(&holds).await.is_none(), "a stale update of theirs");
    a.keep(&next).await;
}

#[tokio::test]
async fn one_of_theirs_that_stops_too_late_ends_our_leadership_at_once_and_it_begins_anew() {
    let server = server_for_leaders(Version::Current, LONG).await;
    let judge = Judge::default();
    let start = |id| judge.start(candidate(&leaders(server.port()), id).ttl(LONG).renew_interval(LONG / 3));
    let a = start("a").await;
    let first = leads(&a).await.epoch();
    let b = start("b").await;
    soon(b.wait_until(|status| status.leader.as_ref() == Some(a.id()))).await.unwrap();
    let deleted = boot_now();
    Other::new(&server, "stale").await.delete().await;
    let (lost, reason) = judge.lost("a").await;
    assert_eq!(reason, Reason::Conflict);
    // By the watch, not by the next renewal.
    assert!(lost.boot.since(deleted) < LONG / 6, "noticed after {:?}", lost.boot.since(deleted));
    let next = |what: &What| matches!(what, What::Acquired { epoch, .. } if *epoch > first);
    let again = judge.heard("a", next).await;
    assert!(again.boot.since(deleted) < LONG / 6, "it knows that nobody else led");
    assert!(!b.is_leader());
    assert_eq!(judge.verdict(), 2);
}

#[tokio::test]
async fn one_of_theirs_that_lives_is_never_deposed_and_a_silent_one_when_its_ttl_is_over() {
    let server = server_for_leaders(Version::Current, TTL).await;
    let (a, other) = (ours(&server, "a", SHORT), Other::new(&server, "other").await);
    let mut holds = other.create().await.expect("nobody is there");
    // Slower than our own ttl, but quick enough for theirs.
    for _ in 0..4 {
        tokio::time::sleep(SHORT).await;
        a.denied().await;
        holds = other.update(&holds).await.expect("nobody else has written");
        a.denied().await;
    }
    let last = boot_now();
    let (grant, at) = a.lead_within(PATIENCE).await;
    assert!(at.since(last) >= TTL - Duration::from_millis(100), "deposed after {:?}", at.since(last));
    assert!(other.update(&holds).await.is_none());
    a.keep(&grant).await;
}

#[tokio::test]
async fn one_of_ours_that_died_is_followed_by_theirs_when_the_server_has_taken_its_record_away() {
    let server = server_for_leaders(Version::Current, TTL).await;
    let (a, other) = (ours(&server, "a", TTL), Other::new(&server, "other").await);
    let grant = a.lead().await;
    let grant = a.keep(&grant).await;
    let holds = created(&other).await;
    assert!(boot_now().since(grant.counted_from) >= TTL, "they were let in before our ttl was over");
    assert!(matches!(a.renew(&grant).await, Outcome::Denied(_)));
    other.update(&holds).await.expect("nobody else has written");
}

#[tokio::test]
async fn in_twenty_rounds_theirs_and_ours_never_lead_at_once() {
    let server = server_for_leaders(Version::Current, ROUND).await;
    let judge = Judge::default();
    let other = Other::new(&server, "other").await;
    let builder = candidate(&leaders(server.port()), "a").ttl(ROUND).renew_interval(ROUND / 10);
    let a = judge.start(builder.cooldown(ROUND / 5)).await;
    let mut last = (Boot::default(), Epoch::ZERO);
    for round in 0..20 {
        let leadership = leads(&a).await;
        let acquired =
            |what: &What| matches!(what, What::Acquired { epoch, .. } if *epoch == leadership.epoch());
        let acquired = judge.heard("a", acquired).await.boot;
        assert!(acquired >= last.0, "round {round}: ours led while theirs did");
        assert!(leadership.epoch() > last.1, "round {round}");
        for _ in 0..5 {
            assert!(other.create().await.is_none() || !leadership.is_valid(), "round {round}: theirs got in");
            tokio::time::sleep(ROUND / 50).await;
        }
        soon(a.step_down()).await.unwrap();
        let mut holds = created(&other).await;
        assert!(!a.is_leader(), "round {round}: theirs led while ours did");
        for _ in 0..3 {
            tokio::time::sleep(ROUND / 10).await;
            holds = other.update(&holds).await.expect("nobody else has written");
            assert!(!a.is_leader(), "round {round}");
        }
        let until = boot_now();
        // In turns it stops and dies.
        let until = if round % 2 == 0 {
            other.delete().await;
            until
        } else {
            until + (ROUND - Duration::from_millis(50))
        };
        last = (until, leadership.epoch());
    }
    assert_eq!(judge.verdict(), 20);
}

#[tokio::test]
async fn one_of_theirs_cannot_be_asked_to_step_down() {
    let server = server_for_leaders(Version::Current, TTL).await;
    let (a, other) = (ours(&server, "a", TTL), Other::new(&server, "other").await);
    let holds = other.create().await.expect("nobody is there");
    a.denied().await;
    let request = Request { epoch: Epoch::new(1).unwrap(), what: Ask::StepDown { to: None } };
    match a.backend.request(&a.on, &request).await {
        Outcome::Refused(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}"),
        answer => panic!("was to be refused: {answer:?}"),
    }
    assert_eq!(other.get().await.revision, holds.revision, "asking has written something");
}

#[tokio::test]
async fn a_server_that_says_that_a_record_has_run_out_spares_a_newcomer_the_wait() {
    let server = Server::start(Version::Current).await;
    let age = 2 * TTL;
    let mut settings = aged(age);
    (settings["allow_msg_ttl"], settings["subject_delete_marker_ttl"]) =
        (json!(true), json!(60_000_000_000_u64));
    server.bucket(LEADERS, settings).await;
    let dead = ours(&server, "dead", age);
    let grant = dead.lead().await;
    tokio::time::sleep(age / 2).await;
    let b = ours(&server, "b", age);
    let mut news = b.news();
    b.denied().await;
    let seen = news.until_seen(|seen| seen.holder.is_none()).await;
    assert_eq!(seen.proof, Proof::Released);
    let next = b.lead().await;
    assert!(boot_now().since(grant.counted_from) >= age);
    assert!(next.epoch > grant.epoch);
}

#[tokio::test]
async fn a_record_that_the_server_took_away_in_silence_is_not_waited_for_once_more() {
    for version in [Version::Current, Version::Old] {
        let server = server_for_leaders(version, TTL).await;
        let (dead, b) = (ours(&server, "dead", TTL), ours(&server, "b", TTL));
        let other = Other::new(&server, "other").await;
        let grant = dead.lead().await;
        b.denied().await;
        nothing_left(&other).await;
        let gone = boot_now();
        let (next, at) = b.lead_within(PATIENCE).await;
        assert!(at.since(gone) < TTL, "waited for {:?} once more", at.since(gone));
        assert!(at.since(grant.counted_from) >= TTL && next.epoch > grant.epoch);
    }
}

#[tokio::test]
async fn a_record_that_went_with_its_bucket_is_waited_for_from_then() {
    let server = server_for_leaders(Version::Current, TTL).await;
    let (a, b) = (ours(&server, "a", TTL), ours(&server, "b", TTL));
    let grant = a.lead().await;
    b.denied().await;
    tokio::time::sleep(TTL / 2).await;
    // Which `b` does not see.
    a.keep(&grant).await;
    server.remove_bucket(LEADERS).await;
    server.bucket(LEADERS, aged(TTL)).await;
    let gone = boot_now();
    let (_, at) = b.lead_within(PATIENCE).await;
    assert!(at.since(gone) >= TTL, "led {:?} after the bucket was made anew", at.since(gone));
}

#[tokio::test]
async fn whatever_lies_under_the_key_ends_after_a_ttl() {
    let server = server_for_leaders(Version::Current, Duration::ZERO).await;
    let hand = Other::new(&server, "hand").await;
    let mut last = Epoch::ZERO;
    let deep = "[".repeat(100_000);
    let meta = format!(r#"{{"id":"x","token":"t","meta":{}}}"#, "{\"a\":".repeat(10_000));
    let huge = format!(r#"{{"id":"x","token":"t","meta":{{"a":"{}"}}}}"#, "x".repeat(900_000));
    for text in
        ["", "not JSON", "{}", r#"{"id":7,"token":true}"#, r#"{"id":"","token":""}"#, &deep, &meta, &huge]
    {
        hand.put(text).await;
        let a = ours(&server, "a", Duration::from_millis(500));
        let mut news = ours(&server, "w", TTL).news();
        a.denied().await;
        let (grant, _) = a.lead_within(PATIENCE).await;
        assert!(grant.epoch > last);
        last = grant.epoch;
        news.until_seen(|seen| seen.epoch == Some(grant.epoch)).await;
        a.keep(&grant).await;
    }
}

async fn up(server: &Server, last: &mut Epoch, what: &str) -> (Actor<Nats>, bellwether_core::Grant) {
    // A candidate that knows nothing but what the store knows.
    let fresh = ours(server, "fresh", SHORT);
    let (grant, _) = fresh.lead_within(PATIENCE).await;
    assert!(grant.epoch > *last && grant.epoch <= Epoch::MAX, "{what}: {:?} followed {last:?}", grant.epoch);
    *last = grant.epoch;
    (fresh, grant)
}

#[tokio::test]
async fn epochs_rise_through_stop_crash_expiry_deletion_others_and_a_bucket_made_anew() {
    tokio::join!(rising(Version::Current), rising(Version::Old));
}

async fn rising(version: Version) {
    let server = server_for_leaders(version, SHORT).await;
    let other = Other::new(&server, "other").await;
    let mut last = Epoch::ZERO;
    let (first, grant) = up(&server, &mut last, "at first").await;
    first.let_go(&grant).await;
    up(&server, &mut last, "release").await;
    up(&server, &mut last, "crash").await;
    // Nothing is left then, not even a mark.
    nothing_left(&other).await;
    let (second, grant) = up(&server, &mut last, "expiry on the server").await;
    second.let_go(&grant).await;
    server.put(LEADERS, KEY, None).await;
    up(&server, &mut last, "deletion of the mark of a release").await;
    server.put(LEADERS, KEY, None).await;
    let (third, grant) = up(&server, &mut last, "deletion of the key").await;
    third.let_go(&grant).await;
    created(&other).await;
    other.delete().await;
    up(&server, &mut last, "a leadership of theirs").await;
    server.remove_bucket(LEADERS).await;
    server.bucket(LEADERS, aged(SHORT)).await;
    up(&server, &mut last, "the bucket made anew").await;
}

#[tokio::test]
async fn a_bucket_that_forgets_before_the_ttl_is_refused_and_one_that_is_made_forgets_at_the_ttl() {
    let server = server_for_leaders(Version::Current, SHORT).await;
    match ours(&server, "a", TTL).claim().await {
        Outcome::Refused(error) => {
            assert_eq!(error.kind(), ErrorKind::Misconfigured);
            assert!(error.to_string().contains("max age"), "{error}");
        }
        answer => panic!("was to be refused: {answer:?}"),
    }
    let made = format!("{}?profile=leader&bucket=made&create=yes", server.url());
    let _ = actor(&made, "a").lead().await;
    let info = server.api("STREAM.INFO.KV_made", json!({})).await;
    assert_eq!(info["config"]["max_age"].as_u64().map(Duration::from_nanos), Some(TTL), "{info}");
}

#[tokio::test]
async fn an_election_that_was_made_to_measure_leaves_nothing_behind() {
    let server = server_for_leaders(Version::Current, TTL).await;
    let a = ours(&server, "a", TTL);
    let grant = a.lead().await;
    assert!(matches!(a.backend.danger_discard(&a.on).await.unwrap(), Discarded::Remains(_)), "it is held");
    a.let_go(&grant).await;
    assert!(matches!(a.backend.danger_discard(&a.on).await.unwrap(), Discarded::Gone));
    assert_eq!(Other::new(&server, "other").await.get().await.revision, 0, "not even a mark");
}

#[tokio::test]
async fn a_group_is_the_key_and_has_one_name() {
    let server = server_for_leaders(Version::Current, TTL).await;
    let url = format!("{}&group={KEY}", leaders(server.port()));
    let mut a = actor(&url, "a");
    a.on = election("control manager №1");
    let grant = a.lead().await;
    assert!(Other::new(&server, "other").await.create().await.is_none(), "the key is taken");
    assert_eq!(a.backend.elections().await.unwrap(), std::slice::from_ref(&a.on));
    match actor(&url, "b").claim().await {
        Outcome::Refused(error) => assert!(error.to_string().contains("control manager"), "{error}"),
        answer => panic!("was to be refused: {answer:?}"),
    }
    a.keep(&grant).await;
}
