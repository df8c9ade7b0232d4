//! What engines say to each other: a version byte and a kind byte, then the message.
//!
//! ```text
//! vote, pre-vote   a candidate asks
//! append           a leader sends entries, or none as a heartbeat
//! snapshot         a leader announces a snapshot, sends it in pieces, and has it installed
//! transfer         a leader asks its successor to stand
//! ```
//!
//! Each kind has one kind of answer, without version and kind: whoever asked knows what comes.

use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest};
use openraft::raft::{TransferLeaderResponse, VoteRequest, VoteResponse};
use serde::{Deserialize, Serialize};

use super::codec::{Unreadable, decode};
use super::types::{SnapshotMeta, Types, Vote};

/// Members of one cluster run the same version, or one after it that still speaks this one.
const VERSION: u8 = 1;
/// A piece of a snapshot.
pub(super) const PIECE_MAX_BYTES: usize = 1 << 20;
/// The state is in the memory of every node, and a snapshot of it is there twice while it is received.
pub(super) const SNAPSHOT_MAX_BYTES: u64 = 1 << 30;

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Message {
    Vote(VoteRequest<Types>),
    PreVote(VoteRequest<Types>),
    Append(Append),
    Snapshot(Step),
    Transfer(TransferLeaderRequest<Types>),
}

/// Entries, and their place among those that are under way at the same time.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Append {
    /// None for a heartbeat, which stands for itself.
    pub(super) place: Option<Place>,
    pub(super) request: AppendEntriesRequest<Types>,
}

/// One message among several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Drawn anew for each run of messages.
    pub(super) stream: u64,
    /// Counts from 0.
    pub(super) sequence: u64,
}

/// How a snapshot is sent: step after step, each after the answer to the one before it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Step {
    /// First. Short, so that a peer that does not answer is noticed soon.
    Begin(Announcement),
    Piece {
        transfer: u64,
        offset: u64,
        #[serde(with = "bytes")]
        data: Vec<u8>,
    },
    /// Last. Answered when the snapshot is on disk and in memory.
    Install { transfer: u64 },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Announcement {
    /// Drawn anew for each attempt to send a snapshot.
    pub(super) transfer: u64,
    pub(super) vote: Vote,
    pub(super) meta: SnapshotMeta,
    pub(super) total_bytes: u64,
    pub(super) checksum: u64,
}

/// The answer to a [`Step`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum StepAnswer {
    /// Go on.
    Taken,
    /// The snapshot is installed, or another leader is known.
    Installed(SnapshotResponse<Types>),
    /// This step does not follow those that were taken. Begin again.
    OutOfPlace,
}

pub(super) type VoteAnswer = VoteResponse<Types>;
pub(super) type AppendAnswer = AppendEntriesResponse<Types>;
pub(super) type TransferAnswer = TransferLeaderResponse<Types>;

impl Message {
    pub(super) fn encode(&self) -> Result<Vec<u8>, Unreadable> {
        postcard::to_extend(self, vec![VERSION]).map_err(|error| Unreadable(error.to_string()))
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Message, Unreadable> {
        match bytes {
            [VERSION, message @ ..] => decode(message),
            [version, ..] => {
                Err(Unreadable(format!("it has version {version}, and this program knows {VERSION}")))
            }
            [] => Err(Unreadable("it is empty".to_owned())),
        }
    }
}

/// As one piece and not one by one.
mod bytes {
    use std::fmt;

    use serde::{Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl de::Visitor<'_> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
        }
        from.deserialize_bytes(Bytes)
    }
}
