//! What fuzzing asks of the engine's messages and snapshots, as [`crate::fuzz`] lists it.

use std::fmt::Debug;
use std::sync::Arc;

use openraft::entry::RaftEntry;
use openraft::raft::{AppendEntriesRequest, VoteRequest};
use openraft::vote::RaftLeaderId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codec::{decode, seal, unseal};
use super::log_file::Head;
use super::message::{
    Announcement, Append, AppendAnswer, Message, Place, Step, StepAnswer, TransferAnswer, VoteAnswer,
};
use super::snapshots::{self, included};
use super::types::{Command, Entry, LogId, Snapshot, SnapshotMeta, Vote, configuration};
use crate::names::NodeId;

/// What engines send to each other, what they answer, and what they keep in their logs. The first byte chooses which.
pub fn engine_message(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    match which % 7 {
        0 => {
            let Ok(message) = Message::decode(bytes) else { return };
            let written = message.encode().expect("what was read can be written");
            assert!(written.len() <= bytes.len(), "{} bytes became {}", bytes.len(), written.len());
            let again = Message::decode(&written).expect("what was written");
            assert_eq!(format!("{again:?}"), format!("{message:?}"));
        }
        1 => reread::<VoteAnswer>(bytes),
        2 => reread::<AppendAnswer>(bytes),
        3 => reread::<StepAnswer>(bytes),
        4 => reread::<TransferAnswer>(bytes),
        5 => stored::<Entry>(bytes),
        _ => stored::<Head>(bytes),
    }
}

/// A message of every kind, and an entry as it is stored.
pub fn engine_message_examples() -> Vec<Vec<u8>> {
    let vote = Vote::new_committed(1, 8);
    let entries = vec![Entry::new_normal(id(4), Command::from(vec![1, 2]))];
    let request =
        AppendEntriesRequest { vote, prev_log_id: Some(id(3)), entries, leader_commit: Some(id(2)) };
    let place = Some(Place { stream: 77, sequence: 0 });
    let meta = SnapshotMeta { last_log_id: Some(id(3)), ..SnapshotMeta::default() };
    let announcement = Announcement { transfer: 5, vote, meta, total_bytes: 3, checksum: 9 };
    let messages = [
        Message::Vote(VoteRequest::new(vote, Some(id(3)))),
        Message::Append(Append { place, request }),
        Message::Snapshot(Step::Begin(announcement)),
        Message::Snapshot(Step::Piece { transfer: 5, offset: 0, data: vec![1, 2, 3] }),
        Message::Snapshot(Step::Install { transfer: 5 }),
    ];
    let of = |which: u8, bytes: Vec<u8>| [vec![which], bytes].concat();
    let mut all: Vec<Vec<u8>> =
        messages.iter().map(|message| of(0, message.encode().expect("it can be written"))).collect();
    let entry = Entry::new_normal(id(4), Command::Recovered(2));
    all.push(of(3, postcard::to_stdvec(&StepAnswer::OutOfPlace).expect("it can be written")));
    all.push(of(5, seal(PLACE, &entry).expect("it can be written")));
    all
}

fn reread<T: DeserializeOwned + Serialize + Debug>(bytes: &[u8]) {
    let Ok(value) = decode::<T>(bytes) else { return };
    let written = postcard::to_stdvec(&value).expect("what was read can be written");
    let again = decode::<T>(&written).expect("what was written");
    assert_eq!(format!("{again:?}"), format!("{value:?}"));
}

/// Where the value lies that is read.
const PLACE: u64 = 4;

/// A stored value counts only with its checksum; with one, its bytes are any that a release may have written.
fn stored<T: DeserializeOwned + Serialize + Debug>(bytes: &[u8]) {
    if unseal::<T>(PLACE, bytes).is_ok() {
        assert!(unseal::<T>(PLACE + 1, bytes).is_err(), "it is read only where it was stored");
    }
    let Ok(value) = decode::<T>(bytes) else { return };
    let sealed = seal(PLACE, &value).expect("what was read can be written");
    let again: T = unseal(PLACE, &sealed).expect("what was written");
    assert_eq!(format!("{again:?}"), format!("{value:?}"));
}

/// The file of a snapshot, but for its checksum.
pub fn engine_snapshot(bytes: &[u8]) {
    let Ok((header, data)) = snapshots::parse(bytes) else { return };
    assert!(data.len() < bytes.len());
    let _ = included(&header.meta);
    assert!(configuration(&header.meta.last_membership).members.len() <= bytes.len());
}

/// A snapshot of three bytes.
pub fn engine_snapshot_examples() -> Vec<Vec<u8>> {
    let meta = SnapshotMeta { last_log_id: Some(id(3)), ..SnapshotMeta::default() };
    let snapshot = Snapshot { meta, snapshot: Arc::new(b"abc".to_vec()) };
    let front = snapshots::front(NodeId::from_random(9), &snapshot).expect("it can be written");
    vec![[&front[..], b"abc", &[0; 8]].concat()]
}

fn id(index: u64) -> LogId {
    LogId::new(RaftLeaderId::new(1, 8), index)
}
