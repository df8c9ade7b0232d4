//! What clients and nodes say to each other, beside the commands and answers of the log.
//!
//! A message is one version byte and the message in postcard. Unlike what stands in the log it is gone when it was read; but clients and
//! nodes are of different releases while a cluster is upgraded, so variants and fields are only ever added at the end of an enum.

use std::time::Duration;

use bellwether_cluster::ClusterView;
use bellwether_core::{CandidateId, ElectionName, Epoch};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::answer::ElectionView;
use crate::command::{AskLine, PastLine, SessionId};
use crate::wire::{self, Wire};

/// The first byte of every message.
const VERSION: u8 = 1;

/// What a client asks of a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClientRequest {
    pub(crate) what: Question,
    /// A node has passed this on already: whoever receives it does not do so again.
    pub(crate) is_forwarded: bool,
    /// For how long the client waits for the answer.
    pub(crate) limit_millis: u32,
}

impl ClientRequest {
    pub(crate) fn new(what: Question, limit: Duration) -> ClientRequest {
        let limit_millis = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        ClientRequest { what, is_forwarded: false, limit_millis }
    }

    #[cfg(feature = "service")]
    pub(crate) fn limit(&self) -> Duration {
        Duration::from_millis(self.limit_millis.into())
    }
}

/// What can be asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    /// Propose this [`Command`](crate::command::Command).
    Propose(Vec<u8>),
    /// This session is alive: keep it so, and say what it leads.
    KeepAlive(SessionId),
    /// Read what is true now.
    Read(Query),
    /// Read what the node that is asked knows, and how old that may be. Never passed on.
    ReadHere(Query),
    /// The members, as the leader sees them.
    Members,
    /// The node that is asked, and its release. Never passed on.
    Node,
}

/// What can be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Query {
    Election(#[serde(with = "wire")] ElectionName),
    Queue(#[serde(with = "wire")] ElectionName),
    History(#[serde(with = "wire")] ElectionName),
    Elections,
    Note(#[serde(with = "wire")] ElectionName),
}

/// The answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The command was applied; an [`Answer`](crate::answer::Answer).
    Applied(Vec<u8>),
    /// The session lives, and leads these elections.
    Kept {
        led: Vec<Led>,
    },
    /// There is no such session.
    Ended,
    /// What was read.
    Read(Finding),
    /// What the node that was asked knows. It was true at most so long ago; `None` if the node cannot tell.
    ReadHere {
        finding: Finding,
        age_millis: Option<u64>,
    },
    Members(ClusterView),
    Node {
        name: String,
        version: String,
    },
    /// Nothing was done: the node neither leads nor could pass the request on. It may know who leads.
    NotLeader {
        leader: Option<String>,
    },
    /// It may have been done, or may still be.
    Unknown {
        why: String,
    },
    /// Nothing was done, and trying again will not help.
    Refused {
        why: String,
    },
}

/// What was read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Finding {
    Election(Box<ElectionView>),
    /// First come first, by priority.
    Queue(Vec<Text<CandidateId>>),
    History(Vec<PastLine>),
    Elections(Vec<Text<ElectionName>>),
    Note(Option<Vec<u8>>),
}

/// An election that a session leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Led {
    #[serde(with = "wire")]
    pub(crate) on: ElectionName,
    #[serde(with = "wire")]
    pub(crate) epoch: Epoch,
}

/// What a client wants to be told of, from now on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Subscription {
    /// The sessions of this client: in elections that candidates of theirs wait for, they are told of freedom in turn.
    pub(crate) sessions: Vec<SessionId>,
    pub(crate) elections: Vec<Followed>,
}

/// One of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Followed {
    #[serde(with = "wire")]
    pub(crate) on: ElectionName,
    /// Changes up to this revision are known.
    pub(crate) known: u64,
    /// The index of the last request to its leader that is known.
    pub(crate) known_request: u64,
}

/// What followers are told: what there is now, however many changes led to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct News {
    #[serde(with = "wire")]
    pub(crate) on: ElectionName,
    pub(crate) view: ElectionView,
    /// The last request to the present leader, with the log index that made it.
    pub(crate) request: Option<(u64, AskLine)>,
}

/// A name in a list.
#[derive(Clone, Debug)]
pub(crate) struct Text<T>(pub(crate) T);

impl<T: Wire> Serialize for Text<T> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        wire::serialize(&self.0, to)
    }
}

impl<'de, T: Wire> Deserialize<'de> for Text<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Text<T>, D::Error> {
        wire::deserialize(from).map(Text)
    }
}

pub(crate) fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    postcard::to_extend(message, vec![VERSION]).expect("messages have nothing that postcard cannot write")
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match bytes {
        [VERSION, rest @ ..] => postcard::from_bytes(rest).map_err(|error| {
            format!(
                "the message cannot be read: {error}; run releases that know each other on nodes and clients"
            )
        }),
        _ => {
            Err("the message has a version that this program does not know: upgrade the older side"
                .to_owned())
        }
    }
}
