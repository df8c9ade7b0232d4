//! Messages that arrive in another order than they were sent, and messages that no engine sends.

use std::future::ready;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openraft::entry::RaftEntry;
use openraft::raft::AppendEntriesRequest;
use openraft::vote::RaftLeaderId;
use tempfile::TempDir;
use tokio::time::timeout;

use super::codec::decode;
use super::message::{Announcement, Append, AppendAnswer, Message, Place, Step, StepAnswer};
use super::storage_tests::{CLUSTER, NODE, Remembers};
use super::types::{Command, Entry, LogId, SnapshotMeta, StoredMembership, Vote};
use super::{EngineOptions, OpenraftEngine};
use crate::adapter::{Lane, PeerLink, Unreached};
use crate::member::Member;

/// Whoever sends the messages.
const LEADER: u64 = 8;
/// A stream of messages, drawn by their leader.
const STREAM: u64 = 77;

struct Nobody;

impl PeerLink for Nobody {
    fn call(
        &self,
        _: &Member,
        _: Lane,
        _: Vec<u8>,
        _: Duration,
    ) -> BoxFuture<'_, Result<Vec<u8>, Unreached>> {
        Box::pin(ready(Err(Unreached("nobody is there".to_owned()))))
    }
}

async fn engine(directory: &Path) -> OpenraftEngine {
    let options = EngineOptions::new(directory, NODE, CLUSTER);
    OpenraftEngine::open(options, Box::<Remembers>::default(), Arc::new(Nobody)).await.unwrap()
}

fn id(index: u64) -> LogId {
    LogId::new(RaftLeaderId::new(1, LEADER), index)
}

/// One entry, as the message of this place in a stream.
fn message(sequence: u64) -> Vec<u8> {
    let request = AppendEntriesRequest {
        vote: Vote::new_committed(1, LEADER),
        prev_log_id: sequence.checked_sub(1).map(id),
        entries: vec![Entry::new_normal(id(sequence), Command::from(vec![1]))],
        leader_commit: None,
    };
    let place = Some(Place { stream: STREAM, sequence });
    Message::Append(Append { place, request }).encode().unwrap()
}

async fn take(engine: &OpenraftEngine, message: Vec<u8>) -> AppendAnswer {
    let answer = timeout(Duration::from_secs(20), engine.receiver.receive(&message)).await;
    decode(&answer.expect("an answer in time").unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_overtook_others_waits_for_them() {
    let directory = TempDir::new().unwrap();
    let engine = engine(directory.path()).await;
    assert_eq!(take(&engine, message(0)).await, AppendAnswer::Success);
    // Polled in this order, the last one first.
    let answers =
        tokio::join!(take(&engine, message(3)), take(&engine, message(2)), take(&engine, message(1)));
    assert_eq!(answers, (AppendAnswer::Success, AppendAnswer::Success, AppendAnswer::Success));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_predecessor_never_comes_is_a_conflict_and_not_waited_for_long() {
    let directory = TempDir::new().unwrap();
    let engine = engine(directory.path()).await;
    assert_eq!(take(&engine, message(0)).await, AppendAnswer::Success);
    assert_eq!(take(&engine, message(2)).await, AppendAnswer::Conflict);
    assert_eq!(take(&engine, message(1)).await, AppendAnswer::Success, "it is sent again, and taken");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_piece_of_a_snapshot_from_beyond_all_numbers_is_out_of_place() {
    let directory = TempDir::new().unwrap();
    let engine = engine(directory.path()).await;
    let transfer = 5;
    let meta = SnapshotMeta { last_log_id: None, last_membership: StoredMembership::default() };
    let vote = Vote::new_committed(1, LEADER);
    let begin = Step::Begin(Announcement { transfer, vote, meta, total_bytes: 10, checksum: 0 });
    let piece = |offset| Step::Piece { transfer, offset, data: vec![1; 8] };
    for (step, is_taken) in
        [(begin, true), (piece(u64::MAX), false), (piece(0), true), (piece(8), false), (piece(0), false)]
    {
        let message = Message::Snapshot(step).encode().unwrap();
        let answer: StepAnswer = decode(&engine.receiver.receive(&message).await.unwrap()).unwrap();
        assert_eq!(matches!(answer, StepAnswer::Taken), is_taken, "{answer:?}");
    }
}
