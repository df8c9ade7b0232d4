//! Elections on a store that is read-only, full, removed, or not a directory: a clear answer, and nothing is lost.

use std::fs;
use std::time::Duration;

use crate::support::mounts::{Mounted, mount};
use crate::support::{actor, names};
use bellwether_backend::{Backend, Past};
use bellwether_core::{CandidateId, ErrorKind, Outcome, Proof};
use bellwether_deadman::boot_now;
use bellwether_file::{from_url, open};
use bellwether_support::{Scratch, clock, election};

const TTL: Duration = Duration::from_millis(500);

#[tokio::test]
async fn looking_makes_nothing_and_finds_nothing_where_nothing_is() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("not/yet");
    let observer = actor(&dir, "o", TTL);
    assert!(observer.backend.capabilities().crash_proof, "known from where it will be");
    let mut news = observer.news();
    assert_eq!(observer.seen().await.proof, Proof::Absent);
    assert_eq!(observer.backend.history(&observer.on).await.unwrap(), []);
    assert_eq!(observer.backend.elections().await.unwrap(), []);
    assert_eq!(
        news.until_seen(|_| true).await.proof,
        Proof::Absent,
        "what there is when one begins to follow"
    );
    assert_eq!(news.count(Duration::from_millis(700)).await, 0);
    assert_eq!(names(scratch.path()), Vec::<String>::new());

    let leader = actor(&dir, "a", TTL);
    leader.lead().await;
    news.until_seen(|seen| seen.is_held_by(&leader.bid.who)).await;
}

#[tokio::test]
async fn a_read_only_store_shows_its_leader_and_refuses_claims_with_the_reason() {
    let mounted = Mounted::new();
    let leader = actor(mounted.path(), "a", TTL);
    let grant = leader.lead().await;
    // A sign of life is a file open for writing, so the file system itself cannot be made read-only under a leader.
    let view = mounted.read_only();
    let other = actor(view.path(), "b", TTL);
    assert!(other.seen().await.is_held_by(&leader.bid.who));
    leader.backend.retire(&leader.on, &leader.bid.who);
    let mut same = actor(view.path(), "a", TTL);
    same.bid.who = leader.bid.who.clone();
    let renewed = same.renew(&grant).await;
    assert!(
        matches!(&renewed, Outcome::Refused(error) if error.kind() == ErrorKind::PermissionDenied),
        "{renewed:?}"
    );
    tokio::time::sleep(TTL + Duration::from_millis(50)).await;
    match other.claim().await {
        Outcome::Refused(error) => {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied);
            assert!(error.to_string().contains("mounted read-only"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let (next, _) = actor(mounted.path(), "c", TTL).lead_within(10 * TTL).await;
    assert!(next.epoch > grant.epoch);
}

#[tokio::test]
async fn a_claim_on_an_election_that_was_held_needs_no_right_outside_its_directory() {
    let mounted = Mounted::new();
    // Where earlier versions kept a second register: a claim that had written its record and failed here kept others out.
    let floors = mounted.path().join(".floors/reports");
    fs::create_dir_all(&floors).unwrap();
    mount(&["-t", "tmpfs", "-o", "ro", "bellwether-test"], &floors);
    let candidate = actor(mounted.path(), "a", TTL);
    let grant = candidate.lead().await;
    candidate.let_go(&grant).await;
    assert!(actor(mounted.path(), "b", TTL).lead().await.epoch > grant.epoch);
}

#[tokio::test]
async fn a_candidate_that_cannot_mark_a_new_election_as_held_is_refused_before_it_writes_a_record() {
    let mounted = Mounted::new();
    let floors = mounted.path().join(".floors");
    fs::create_dir(&floors).unwrap();
    mount(&["-t", "tmpfs", "-o", "ro", "bellwether-test"], &floors);
    let candidate = actor(mounted.path(), "a", TTL);
    let claimed = candidate.claim().await;
    assert!(
        matches!(&claimed, Outcome::Refused(error) if error.kind() == ErrorKind::PermissionDenied),
        "{claimed:?}"
    );
    let written = names(&mounted.path().join("reports"));
    assert!(!written.iter().any(|name| name.ends_with(".json")), "{written:?}");
}

#[tokio::test]
async fn a_full_store_is_an_error_that_passes_and_loses_nothing() {
    let mounted = Mounted::new();
    let leader = actor(mounted.path(), "a", Duration::from_secs(30));
    let grant = leader.lead().await;
    let filler = mounted.path().join("filler");
    let _ = fs::write(&filler, vec![b'x'; 1 << 20]);
    let renewed = leader.renew(&grant).await;
    assert!(
        matches!(&renewed, Outcome::Unknown(error) if error.kind() == ErrorKind::Exhausted),
        "{renewed:?}"
    );
    let mut elsewhere = actor(mounted.path(), "b", TTL);
    elsewhere.on = election("another");
    let claimed = elsewhere.claim().await;
    assert!(
        matches!(&claimed, Outcome::Unknown(error) if error.kind() == ErrorKind::Exhausted && error.is_retryable()),
        "{claimed:?}"
    );
    assert!(elsewhere.seen().await.holder.is_none(), "nothing half-written");
    assert!(actor(mounted.path(), "c", TTL).denied().await.is_held_by(&leader.bid.who));
    fs::remove_file(filler).unwrap();
    leader.keep(&grant).await;
    elsewhere.lead().await;
}

#[tokio::test]
async fn a_leader_whose_directory_was_removed_loses_at_its_next_renewal_and_the_next_epoch_is_higher() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    let leader = actor(&dir, "a", TTL);
    let follower = actor(&dir, "b", TTL);
    let mut news = follower.news();
    let grant = leader.lead().await;
    follower.denied().await;
    fs::remove_dir_all(dir.join("reports")).unwrap();
    news.until_seen(|seen| seen.proof == Proof::Absent).await;
    let renewed = leader.renew(&grant).await;
    assert!(matches!(&renewed, Outcome::Denied(seen) if seen.holder.is_none()), "{renewed:?}");
    let begun = boot_now();
    let (next, at) = follower.lead_within(10 * TTL).await;
    let took = at.since(begun);
    assert!(took + Duration::from_millis(100) >= TTL, "it had seen the record: {took:?}");
    assert!(next.epoch > grant.epoch);
    assert!(leader.denied().await.is_held_by(&follower.bid.who));
    follower.keep(&next).await;
    follower.let_go(&next).await;
    let third = leader.lead().await;
    assert!(third.epoch > next.epoch, "and the sign of life was made anew");
    assert!(names(&dir.join("reports")).contains(&format!("{}.alive", leader.bid.who.incarnation)));
}

#[tokio::test]
async fn a_file_in_a_directorys_place_is_refused_and_left_alone() {
    let scratch = Scratch::new();
    let path = scratch.path().join("store");
    fs::write(&path, "precious").unwrap();
    for error in [
        open(&path, clock()).err().unwrap(),
        from_url(&format!("file:{}/below", path.display()), clock()).err().unwrap(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        assert!(error.to_string().contains("a file is in the place of a directory"), "{error}");
    }
    let actor = actor(scratch.path(), "a", TTL);
    fs::write(scratch.path().join("reports"), "precious too").unwrap();
    let claimed = actor.claim().await;
    assert!(
        matches!(&claimed, Outcome::Refused(error) if error.kind() == ErrorKind::Misconfigured),
        "{claimed:?}"
    );
    assert_eq!(fs::read_to_string(scratch.path().join("reports")).unwrap(), "precious too");
    assert_eq!(fs::read_to_string(path).unwrap(), "precious");
}

#[tokio::test]
async fn elections_and_ids_of_any_name_are_kept_apart_and_listed_by_their_full_names() {
    let scratch = Scratch::new();
    let long = "x".repeat(253);
    let mut all: Vec<_> = ["..", ".", ".floors", "a/b", "a-b", "A-b", "naïve №1", "🐑", "~", "a b", &long]
        .into_iter()
        .map(election)
        .collect();
    let mut actors = Vec::new();
    for on in &all {
        let mut actor = actor(scratch.path(), on.as_str(), TTL);
        actor.on = on.clone();
        actor.bid.cooldown = Some(TTL);
        let grant = actor.lead().await;
        let past = Past {
            epoch: grant.epoch,
            id: CandidateId::new(on.as_str()).unwrap(),
            incarnation: Some(grant.incarnation),
            since: Default::default(),
            until: None,
            ended: None,
        };
        actor.backend.remember(on, &past).await.unwrap();
        assert_eq!(actor.backend.history(on).await.unwrap(), [past]);
        actors.push((actor, grant));
    }
    for (actor, grant) in &actors {
        actor.keep(grant).await;
    }
    all.sort();
    assert_eq!(actors[0].0.backend.elections().await.unwrap(), all);
    // No name leads out of the directory.
    assert_eq!(
        names(scratch.path().parent().unwrap()).iter().filter(|name| name.contains(".alive")).count(),
        0
    );
}
