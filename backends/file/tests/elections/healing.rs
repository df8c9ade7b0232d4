//! Records that make no sense, records of others, records deleted: the election goes on, safely and with higher epochs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::support::{actor, incarnation, names};
use bellwether_backend::{Backend, Record, Register, Write};
use bellwether_core::{CandidateId, Epoch, ErrorKind, Holder, Outcome, Proof};
use bellwether_deadman::boot_now;
use bellwether_file::RECORD_MAX_BYTES;
use bellwether_support::{Scratch, clock, election};

const TTL: Duration = Duration::from_millis(400);

fn spoil(place: &Path, how: &str, good: &[u8]) {
    match how {
        "corrupt" => fs::write(place, b"\x00\xffnot json").unwrap(),
        "empty" => fs::write(place, "").unwrap(),
        "truncated" => fs::write(place, &good[..good.len() / 2]).unwrap(),
        "huge" => fs::write(place, vec![b' '; RECORD_MAX_BYTES + 1]).unwrap(),
        "foreign" => {
            let seed = r#"{"holder":"pod-7","renewTime":"2099-01-01T00:00:00Z","leaseDuration":"400ms"}"#;
            fs::write(place, seed).unwrap();
        }
        "directory" => fs::create_dir(place).unwrap(),
        "link" => std::os::unix::fs::symlink("/dev/zero", place).unwrap(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_record_that_makes_no_sense_keeps_others_out_for_a_ttl_and_is_then_replaced() {
    for how in ["corrupt", "empty", "truncated", "huge", "foreign", "directory", "link"] {
        let scratch = Scratch::new();
        let first = actor(scratch.path(), "a", TTL);
        let mut old = first.lead().await;
        for _ in 0..2 {
            first.let_go(&old).await;
            old = first.lead().await;
        }
        first.let_go(&old).await;
        let dir = scratch.path().join("reports");
        let good = fs::read(dir.join("6.json")).unwrap();
        spoil(&dir.join("7.json"), how, &good);

        let heir = actor(scratch.path(), "b", TTL);
        let seen = heir.denied().await;
        assert_eq!((seen.proof, seen.epoch), (Proof::Record, None), "{how}");
        let begun = boot_now();
        let (grant, at) = heir.lead_within(10 * TTL).await;
        let took = at.since(begun);
        assert!(took + Duration::from_millis(5) >= TTL, "{how}: {took:?}");
        assert!(grant.epoch > old.epoch, "{how}: {:?} followed {:?}", grant.epoch, old.epoch);
        for _ in 0..10 {
            heir.keep(&grant).await;
        }
        assert!(dir.join("7.json").symlink_metadata().is_ok(), "{how}: it is left where it is");
    }
}

#[tokio::test]
async fn a_leader_whose_record_is_spoilt_loses_at_its_next_renewal() {
    let scratch = Scratch::new();
    let leader = actor(scratch.path(), "a", TTL);
    let grant = leader.lead().await;
    fs::write(scratch.path().join("reports/2.json"), "spoilt").unwrap();
    let renewed = leader.renew(&grant).await;
    assert!(matches!(renewed, Outcome::Denied(_)), "{renewed:?}");
}

#[tokio::test]
async fn epochs_go_on_when_the_elections_directory_was_deleted() {
    let scratch = Scratch::new();
    let mut last = Epoch::ZERO;
    for _ in 0..6 {
        // Nobody remembers anything from one round to the next.
        let actor = actor(scratch.path(), "a", TTL);
        let grant = actor.lead().await;
        assert!(grant.epoch > last, "{:?} followed {last:?}", grant.epoch);
        drop(actor);
        assert_eq!(
            last == Epoch::ZERO,
            grant.epoch.get() == 1,
            "the first is 1, and none after it: {grant:?}"
        );
        assert_eq!(
            names(&scratch.path().join(".floors/reports")),
            [""; 0],
            "nothing there that has to be written"
        );
        last = grant.epoch;
        // Epochs count milliseconds then, and on a file system in memory all of this takes less than one.
        tokio::time::sleep(Duration::from_millis(2)).await;
        fs::remove_dir_all(scratch.path().join("reports")).unwrap();
    }
}

#[tokio::test]
async fn an_epoch_that_cannot_be_read_any_more_is_not_issued_again() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("reports");
    let first = actor(scratch.path(), "a", TTL);
    let grant = first.lead().await;
    first.let_go(&grant).await;
    let second = actor(scratch.path(), "b", TTL);
    let grant = second.lead().await;
    // The only record that tells the second epoch.
    fs::write(dir.join("3.json"), "").unwrap();
    let heir = actor(scratch.path(), "c", TTL);
    let (next, _) = heir.lead_within(10 * TTL).await;
    assert!(next.epoch > grant.epoch, "{:?} followed {:?}", next.epoch, grant.epoch);
}

#[tokio::test]
async fn epochs_that_can_be_read_count_where_the_newest_record_cannot_and_the_marker_was_deleted() {
    let scratch = Scratch::new();
    let first = actor(scratch.path(), "a", TTL);
    let grant = first.lead().await;
    first.let_go(&grant).await;
    fs::write(scratch.path().join("reports/3.json"), "").unwrap();
    fs::remove_dir_all(scratch.path().join(".floors")).unwrap();
    let (next, _) = actor(scratch.path(), "b", TTL).lead_within(10 * TTL).await;
    assert!(next.epoch > grant.epoch, "{:?} followed {:?}", next.epoch, grant.epoch);
}

/// Found by review: only the first record of an election came with a marker.
#[tokio::test]
async fn epochs_go_on_after_a_deletion_also_in_a_store_that_was_copied_without_its_markers() {
    let scratch = Scratch::new();
    let first = actor(scratch.path(), "a", TTL);
    let grant = first.lead().await;
    first.let_go(&grant).await;
    fs::remove_dir_all(scratch.path().join(".floors")).unwrap();
    let (grant, _) = actor(scratch.path(), "b", TTL).lead_within(10 * TTL).await;
    fs::remove_dir_all(scratch.path().join("reports")).unwrap();
    let (next, _) = actor(scratch.path(), "c", TTL).lead_within(10 * TTL).await;
    assert!(next.epoch > grant.epoch, "{:?} followed {:?}", next.epoch, grant.epoch);
}

#[tokio::test]
async fn epochs_go_on_after_a_deletion_also_where_the_first_record_followed_a_file_of_others() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("reports");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("7.json"), "theirs").unwrap();
    let (grant, _) = actor(scratch.path(), "a", TTL).lead_within(10 * TTL).await;
    fs::remove_dir_all(&dir).unwrap();
    let (next, _) = actor(scratch.path(), "b", TTL).lead_within(10 * TTL).await;
    assert!(next.epoch > grant.epoch, "{:?} followed {:?}", next.epoch, grant.epoch);
}

#[tokio::test]
async fn a_claim_that_slept_while_records_were_deleted_and_others_led_is_no_success() {
    let scratch = Scratch::new();
    let sleeper = actor(scratch.path(), "sleeper", TTL);
    let drawn = u64::try_from(clock().wall().as_unix_nanos() / 1_000_000).unwrap() - 10_000;
    let record = Record {
        holder: Some(Holder { id: CandidateId::new("sleeper").unwrap(), incarnation: Some(incarnation(1)) }),
        epoch: Epoch::new(drawn),
        ttl: Some(TTL),
        ..Record::default()
    };
    // It has found nothing and drawn an epoch ten seconds ago, and slept before it writes.
    for _ in 0..2 {
        let other = actor(scratch.path(), "other", TTL);
        let grant = other.lead().await;
        other.let_go(&grant).await;
    }
    fs::remove_dir_all(scratch.path().join("reports")).unwrap();
    let late = sleeper.backend.register().write(&sleeper.on, None, &record).await;
    assert!(matches!(late, Write::Conflict), "{late:?}");
    // The same if the election had never been held when it looked.
    let first = Record { epoch: Epoch::new(1), ..record };
    let late = sleeper.backend.register().write(&sleeper.on, None, &first).await;
    assert!(matches!(late, Write::Conflict), "{late:?}");
}

#[tokio::test]
async fn a_plain_file_is_shown_as_it_is_and_taken_over_when_its_time_has_passed() {
    let scratch = Scratch::new();
    let path = scratch.path().join("reports");
    let seed = r#"{"holder":"pod-1","renewTime":"2020-01-01T00:00:00Z","leaseDuration":"400ms"}"#;
    fs::write(&path, seed).unwrap();
    let heir = actor(scratch.path(), "b", TTL);
    assert_eq!(heir.seen().await.leader(), Some(&CandidateId::new("pod-1").unwrap()));
    assert_eq!(heir.backend.elections().await.unwrap(), [election("reports")]);
    assert_eq!(fs::read_to_string(&path).unwrap(), seed, "looking changes nothing");
    assert_eq!(names(scratch.path()), ["reports"]);

    let begun = boot_now();
    let (grant, at) = heir.lead_within(10 * TTL).await;
    let took = at.since(begun);
    assert!(took + Duration::from_millis(50) >= TTL && took < 2 * TTL, "one ttl and not two: {took:?}");
    assert_eq!(fs::read_to_string(path.join("0.json")).unwrap(), seed);
    heir.keep(&grant).await;
}

#[tokio::test]
async fn a_plain_file_that_its_owner_renews_is_left_alone() {
    let scratch = Scratch::new();
    let path = scratch.path().join("reports");
    let heir = actor(scratch.path(), "b", TTL);
    for beat in 0..8 {
        let seed = format!(
            r#"{{"holder":"pod-1","renewTime":"2020-01-01T00:00:0{beat}Z","leaseDuration":"400ms"}}"#
        );
        fs::write(&path, &seed).unwrap();
        heir.denied().await;
        tokio::time::sleep(TTL / 4).await;
        heir.denied().await;
        assert_eq!(fs::read_to_string(&path).unwrap(), seed);
    }
}

#[tokio::test]
async fn another_elections_directory_is_refused_and_left_as_it_is() {
    let scratch = Scratch::new();
    let first = actor(scratch.path(), "a", TTL);
    let _grant = first.lead().await;
    let copy = scratch.path().join("copied");
    fs::create_dir(&copy).unwrap();
    fs::copy(scratch.path().join("reports/1.json"), copy.join("1.json")).unwrap();
    let mut other = actor(scratch.path(), "b", TTL);
    other.on = election("copied");
    match other.claim().await {
        Outcome::Refused(error) => {
            assert_eq!(error.kind(), ErrorKind::Misconfigured);
            assert!(
                error.to_string().contains("holds the election \"reports\" and not \"copied\""),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(names(&copy), ["1.json"]);
}
