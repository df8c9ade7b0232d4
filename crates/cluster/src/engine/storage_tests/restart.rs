//! What a node finds after a restart is what it was told is on disk.

use openraft::RaftLogReader;
use openraft::RaftSnapshotBuilder;
use openraft::storage::{IOFlushed, RaftLogStorage, RaftStateMachine};
use openraft::type_config::TypeConfigExt;
use tempfile::TempDir;

use super::super::types::{Types, Vote};
use super::*;
use crate::error::ErrorKind;

#[tokio::test]
async fn an_acknowledged_vote_and_entry_are_there_after_a_crash() {
    let directory = TempDir::new().unwrap();
    let mut storage = open(directory.path()).unwrap();
    storage.log.save_vote(&Vote::new(3, 7)).await.unwrap();
    append(&mut storage, 3, 0..=9).await.unwrap();
    storage.log.truncate_after(Some(id(3, 6))).await.unwrap();
    append(&mut storage, 4, 7..=8).await.unwrap();
    let before = log(&mut storage).await;
    crash(storage).await;

    let mut storage = open(directory.path()).unwrap();
    assert_eq!(log(&mut storage).await, before);
    assert_eq!(storage.log.read_vote().await.unwrap(), Some(Vote::new(3, 7)));
    assert!(storage.log.is_used());
}

#[tokio::test]
async fn a_vote_alone_makes_a_storage_used() {
    let directory = TempDir::new().unwrap();
    let mut storage = open(directory.path()).unwrap();
    assert!(!storage.log.is_used());
    storage.log.save_vote(&Vote::new(1, 8)).await.unwrap();
    crash(storage).await;
    assert!(open(directory.path()).unwrap().log.is_used());
}

#[tokio::test]
async fn what_is_committed_is_on_disk_after_an_orderly_end() {
    let directory = TempDir::new().unwrap();
    let mut storage = open(directory.path()).unwrap();
    append(&mut storage, 1, 0..=4).await.unwrap();
    storage.log.save_committed(Some(id(1, 3))).await.unwrap();
    storage.log.close().await.unwrap();
    let mut storage = open(directory.path()).unwrap();
    assert_eq!(storage.log.read_committed().await.unwrap(), Some(id(1, 3)));
}

#[tokio::test]
async fn many_appends_in_the_queue_keep_their_order_and_all_are_acknowledged() {
    let directory = TempDir::new().unwrap();
    let mut storage = open(directory.path()).unwrap();
    let mut waiting = Vec::new();
    for index in 0..500 {
        let (done, wait) = Types::oneshot();
        storage.log.append([entry(1, index)], IOFlushed::Signal(done)).await.unwrap();
        waiting.push(wait);
    }
    for wait in waiting {
        wait.await.unwrap().unwrap();
    }
    let before = log(&mut storage).await;
    assert_eq!(before.len(), 500);
    crash(storage).await;
    assert_eq!(log(&mut open(directory.path()).unwrap()).await, before);
}

#[tokio::test]
async fn the_state_comes_back_from_the_newest_of_two_snapshots() {
    let directory = TempDir::new().unwrap();
    let mut storage = open(directory.path()).unwrap();
    append(&mut storage, 1, 0..=29).await.unwrap();
    for upto in [9, 19, 29] {
        let entries = (upto - 9..=upto).map(|index| Ok((entry(1, index), None)));
        storage.machine.apply(futures_util::stream::iter(entries)).await.unwrap();
        storage.machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
    }
    storage.log.purge(id(1, 25)).await.unwrap();
    std::fs::write(directory.path().join("snap/notes.txt"), "not ours").unwrap();
    let hash = storage.machine.hash();
    assert_eq!(hash.1, 29);
    crash(storage).await;

    let mut storage = open(directory.path()).unwrap();
    assert_eq!(storage.machine.hash(), hash);
    assert_eq!(log(&mut storage).await.len(), 4);
    let mut names: Vec<_> = std::fs::read_dir(directory.path().join("snap"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["00000000000000000019.snapshot", "00000000000000000029.snapshot", "notes.txt"]);
}

#[tokio::test]
async fn a_long_purge_leaves_no_hole_wherever_it_is_interrupted() {
    for orderly in [true, false] {
        let directory = TempDir::new().unwrap();
        let mut storage = open(directory.path()).unwrap();
        append(&mut storage, 1, 0..=2_999).await.unwrap();
        let entries = (0..=2_999).map(|index| Ok((entry(1, index), None)));
        storage.machine.apply(futures_util::stream::iter(entries)).await.unwrap();
        storage.machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
        storage.log.purge(id(1, 2_600)).await.unwrap();
        append(&mut storage, 1, 3_000..=3_001).await.unwrap();
        let before = log(&mut storage).await;
        assert_eq!(before.len(), 401);
        if orderly {
            storage.log.close().await.unwrap();
        } else {
            crash(storage).await;
        }

        // Opening it finds every hole.
        let mut storage = open(directory.path()).unwrap();
        assert!(log(&mut storage).await.ends_with(&before));
        let purged = storage.log.get_log_state().await.unwrap().last_purged_log_id;
        assert!(purged >= Some(id(1, 499)), "a step goes with every commit: {purged:?}");
        if orderly {
            assert_eq!(purged, Some(id(1, 2_600)));
        }
    }
}

#[tokio::test]
async fn what_a_snapshot_replaces_is_gone_before_anything_follows_it() {
    let directory = TempDir::new().unwrap();
    let mut storage = open(directory.path()).unwrap();
    append(&mut storage, 1, 0..=2_999).await.unwrap();
    let entries = (0..=4_000).map(|index| Ok((entry(2, index), None)));
    storage.machine.apply(futures_util::stream::iter(entries)).await.unwrap();
    storage.machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
    storage.log.purge(id(2, 4_000)).await.unwrap();
    append(&mut storage, 2, 4_001..=4_001).await.unwrap();
    crash(storage).await;
    let mut storage = open(directory.path()).unwrap();
    assert_eq!(log(&mut storage).await.len(), 1);
}

#[tokio::test]
async fn a_directory_is_used_once_and_by_its_own_node_and_cluster() {
    let directory = TempDir::new().unwrap();
    let storage = open(directory.path()).unwrap();
    let twice = open(directory.path()).err().unwrap();
    assert_eq!(twice.kind(), ErrorKind::InvalidInput);
    assert!(twice.to_string().contains("another process uses"), "{twice}");
    crash(storage).await;
    for (node, cluster) in [(NodeId::from_random(8), CLUSTER), (NODE, ClusterId::from_random(2))] {
        let other = open_as(directory.path(), node, cluster).err().unwrap();
        assert!(other.to_string().contains("belongs to"), "{other}");
    }
    open(directory.path()).unwrap();
}

/// Ends the storage as a killed process does: what was only noted is lost. Returns when the file is free again.
async fn crash(storage: Storage) {
    storage.log.abandon();
    let gone = storage.log.close().await.unwrap_err();
    assert!(gone.to_string().contains("shut down"), "{gone}");
}

/// Whoever starts the node again in the same process, when the disk is mended, must not be told that another process uses the log.
#[tokio::test]
async fn the_log_is_closed_even_after_a_failed_write() {
    let directory = TempDir::new().unwrap();
    let options = EngineOptions::new(directory.path(), NODE, CLUSTER);
    let failure = Failure::none_yet();
    let mut storage = Storage::open(&options, Box::<Remembers>::default(), &failure).unwrap();
    append(&mut storage, 1, 0..=4).await.unwrap();
    failure.note("a write failed");
    assert!(append(&mut storage, 1, 5..=6).await.is_err(), "nothing is written any more");
    let closed = storage.log.close().await.unwrap_err();
    assert!(closed.to_string().contains("a write failed"), "{closed}");
    let mut storage = open(directory.path()).unwrap();
    assert_eq!(log(&mut storage).await.len(), 5);
}
