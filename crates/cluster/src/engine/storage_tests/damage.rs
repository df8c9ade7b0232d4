//! Damage is refused, or changes nothing. It never becomes another past.

use std::fs;
use std::path::{Path, PathBuf};

use openraft::storage::{RaftLogStorage, RaftStateMachine};
use openraft::{RaftLogReader, RaftSnapshotBuilder};
use tempfile::TempDir;

use super::super::types::Vote;
use super::*;
use crate::error::ErrorKind;

/// What a node said that it has on disk.
#[derive(Debug, PartialEq)]
struct Said {
    log: Vec<String>,
    vote: Option<Vote>,
    purged: Option<LogId>,
    state: (u64, u64),
}

async fn said(storage: &mut Storage) -> Said {
    Said {
        log: log(storage).await,
        vote: storage.log.read_vote().await.unwrap(),
        purged: storage.log.get_log_state().await.unwrap().last_purged_log_id,
        state: storage.machine.hash(),
    }
}

/// A node with votes, a log that was cut and purged, and a snapshot.
async fn node(directory: &Path) -> Storage {
    let mut storage = open(directory).unwrap();
    storage.log.save_vote(&Vote::new(1, 7)).await.unwrap();
    append(&mut storage, 1, 0..=29).await.unwrap();
    let entries = (0..=19).map(|index| Ok((entry(1, index), None)));
    storage.machine.apply(futures_util::stream::iter(entries)).await.unwrap();
    storage.machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
    storage.log.purge(id(1, 9)).await.unwrap();
    storage.log.truncate_after(Some(id(1, 24))).await.unwrap();
    storage.log.save_vote(&Vote::new(2, 7)).await.unwrap();
    append(&mut storage, 2, 25..=39).await.unwrap();
    storage
}

/// Opens a copy of the directory in which one file has these bytes instead.
async fn with_file(original: &Path, file: &str, bytes: &[u8], expected: &Said, case: &str) -> Outcome {
    let copy = TempDir::new().unwrap();
    fs::create_dir(copy.path().join("snap")).unwrap();
    for (from, name) in files(original) {
        fs::copy(from, copy.path().join(name)).unwrap();
    }
    fs::write(copy.path().join(file), bytes).unwrap();
    match open(copy.path()) {
        Ok(mut storage) => {
            assert_eq!(said(&mut storage).await, *expected, "{case}: opened with another past");
            storage.log.abandon();
            Outcome::Intact
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{case}: {error}");
            let name = Path::new(file).file_name().unwrap().to_str().unwrap();
            assert!(error.to_string().contains(name) || case.contains("gone"), "{case}: {error}");
            assert!(error.to_string().contains("move the data directory away"), "{case}: {error}");
            Outcome::Refused
        }
    }
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Intact,
    Refused,
}

fn files(directory: &Path) -> Vec<(PathBuf, String)> {
    let snapshots = fs::read_dir(directory.join("snap")).unwrap().map(|file| {
        let file = file.unwrap();
        (file.path(), format!("snap/{}", file.file_name().into_string().unwrap()))
    });
    snapshots.chain([(directory.join("raft.redb"), "raft.redb".to_owned())]).collect()
}

/// The header, and about so many places more, spread over the bytes that are not zero: the rest of the file is unused.
fn places(bytes: &[u8], wanted: usize) -> impl Iterator<Item = usize> {
    let used: Vec<usize> = (HEADER_BYTES..bytes.len()).filter(|place| bytes[*place] != 0).collect();
    let step = (used.len() / wanted).max(1);
    (0..HEADER_BYTES).step_by(3).chain(used.into_iter().step_by(step))
}

const HEADER_BYTES: usize = 320;

#[tokio::test]
async fn every_flipped_bit_of_a_snapshot_is_refused() {
    let original = TempDir::new().unwrap();
    let mut storage = node(original.path()).await;
    let expected = said(&mut storage).await;
    storage.log.close().await.unwrap();
    let file = "snap/00000000000000000019.snapshot";
    let bytes = fs::read(original.path().join(file)).unwrap();
    for place in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        let outcome = with_file(original.path(), file, &flipped, &expected, &format!("byte {place}")).await;
        assert_eq!(outcome, Outcome::Refused, "byte {place}");
    }
    for length in 0..bytes.len() {
        let case = format!("{length} bytes");
        let outcome = with_file(original.path(), file, &bytes[..length], &expected, &case).await;
        assert_eq!(outcome, Outcome::Refused, "{case}");
    }
}

#[tokio::test]
async fn a_snapshot_that_is_gone_is_missed() {
    let directory = TempDir::new().unwrap();
    node(directory.path()).await.log.close().await.unwrap();
    fs::remove_file(directory.path().join("snap/00000000000000000019.snapshot")).unwrap();
    let error = open(directory.path()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("begins after entry 9"), "{error}");
}

#[tokio::test]
async fn a_flipped_bit_of_the_log_is_refused_or_changes_nothing() {
    let original = TempDir::new().unwrap();
    let mut storage = node(original.path()).await;
    let expected = said(&mut storage).await;
    storage.log.close().await.unwrap();
    let bytes = fs::read(original.path().join("raft.redb")).unwrap();
    let mut refused = 0;
    for place in places(&bytes, 150) {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        let case = format!("byte {place}");
        let outcome = with_file(original.path(), "raft.redb", &flipped, &expected, &case).await;
        refused += usize::from(outcome == Outcome::Refused);
    }
    assert!(refused > 20, "only {refused} refused: the test does not hit what counts");
}

#[tokio::test]
async fn a_flipped_bit_of_a_log_that_was_not_closed_is_refused_or_changes_nothing() {
    let original = TempDir::new().unwrap();
    let mut storage = node(original.path()).await;
    let expected = said(&mut storage).await;
    let bytes = fs::read(original.path().join("raft.redb")).unwrap();
    for place in places(&bytes, 150) {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        with_file(original.path(), "raft.redb", &flipped, &expected, &format!("byte {place}")).await;
    }
    storage.log.abandon();
}

#[tokio::test]
async fn a_log_that_was_cut_short_is_refused() {
    let original = TempDir::new().unwrap();
    let mut storage = node(original.path()).await;
    let expected = said(&mut storage).await;
    let bytes = fs::read(original.path().join("raft.redb")).unwrap();
    storage.log.abandon();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let cuts = (0..used).step_by(used / 40).chain([0, 1, 511, 4095, 4096, used]);
    for length in cuts {
        let case = format!("{length} bytes of {}", bytes.len());
        let outcome = with_file(original.path(), "raft.redb", &bytes[..length], &expected, &case).await;
        assert_eq!(outcome, Outcome::Refused, "{case}");
    }
}
