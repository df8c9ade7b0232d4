//! What the state machine answers, and what it shows of an election.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bellwether_core::{Candidate, CandidateId, Epoch, Holder, Proof, Seen, Wall};
use serde::{Deserialize, Serialize};

use crate::command::SessionId;
use crate::wire;

/// The first byte of every answer.
const VERSION: u8 = 1;

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The session is open, since this command or since an earlier try of it.
    Opened(SessionId),
    /// The candidate leads.
    Granted {
        /// Under this epoch.
        #[serde(with = "wire")]
        epoch: Epoch,
        /// The leader before was ended by hand, and its work may still be dying.
        after_crash: bool,
    },
    /// Not done, because of what this shows.
    Denied(Box<ElectionView>),
    /// Done.
    Done,
    /// The note is there since this command.
    Created,
    /// The note was there, with this content.
    Exists(Vec<u8>),
    /// Not done, and nothing has changed.
    Refused(Refusal),
}

/// Why a command was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// There is no such session: it has ended, with every leadership in it. Open another one.
    NoSuchSession,
    /// Another command of this session says that nobody waits for this one any more, or it was cancelled.
    Forgotten,
    /// More than [`IN_FLIGHT_MAX`](crate::limits::IN_FLIGHT_MAX) commands of this session are in flight.
    TooManyInFlight,
    /// The expiry of a session was decided in another term than the one it was applied in.
    OtherTerm,
    /// A bound of [`limits`](crate::limits) is reached: which, and what to do.
    Limit(String),
    /// The election's epochs are used up.
    EpochsSpent,
    /// The bytes are no command that this node knows, or a value in it is out of bounds: why.
    Malformed(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoSuchSession => f.write_str("the session has ended: open another one"),
            Refusal::Forgotten => f.write_str("the command came after its client had given it up"),
            Refusal::TooManyInFlight => {
                write!(f, "more than {} commands are in flight: wait for answers", crate::limits::IN_FLIGHT_MAX)
            }
            Refusal::OtherTerm => f.write_str("the Raft leader changed before the expiry was proposed"),
            Refusal::Limit(what) => f.write_str(what),
            Refusal::EpochsSpent => f.write_str(
                "the epochs of this election are used up: use another name, and bids with a floor below 2^53 - 1",
            ),
            Refusal::Malformed(why) => write!(f, "{why}; run the same release on every node and client"),
        }
    }
}

/// What the store shows of one election.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElectionView {
    /// The log index of the last change.
    pub revision: u64,
    /// The highest epoch that was issued; 0 where none was.
    #[serde(with = "wire")]
    pub epoch: Epoch,
    /// Who leads.
    pub holder: Option<HolderView>,
    /// How the last leadership ended, if one has ended and none follows.
    pub ended: Option<Ended>,
    /// For whom the election is kept.
    #[serde(with = "wire")]
    pub reserved_for: Option<CandidateId>,
    /// How long that lasts: the whole span, unless whoever passes the view on knows how much of it is over.
    pub reservation: Option<Duration>,
    /// How long the bidder has to stay away: the whole span, unless whoever passes the view on knows how much of it is over.
    pub cooldown: Option<Duration>,
}

/// Who leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderView {
    /// The candidate.
    #[serde(with = "wire")]
    pub who: Candidate,
    /// Its session.
    pub session: SessionId,
    /// The session's ttl.
    pub ttl: Duration,
    /// Its priority.
    pub priority: i32,
    /// When its leadership began, by its own wall clock.
    #[serde(with = "wire")]
    pub acquired: Wall,
    /// What it publishes about itself.
    pub metadata: BTreeMap<String, String>,
}

/// How a leadership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// Its holder released it.
    Released,
    /// Its session expired.
    Expired,
    /// Somebody ended it by hand.
    Forced,
}

impl Answer {
    /// The bytes for whoever proposed the command.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![VERSION]).expect("answers have nothing that postcard cannot write")
    }

    /// Reads what [`encode`](Answer::encode) wrote.
    ///
    /// # Errors
    /// When the bytes are no answer that this release knows: why.
    pub fn decode(bytes: &[u8]) -> Result<Answer, String> {
        match bytes {
            [VERSION, rest @ ..] => {
                postcard::from_bytes(rest).map_err(|error| format!("the answer cannot be read: {error}"))
            }
            _ => Err("the answer has a version that this program does not know".to_owned()),
        }
    }
}

impl ElectionView {
    /// In the terms of the core, without what needs a clock: [`Seen::free_at`] is left to the caller.
    pub fn seen(&self) -> Seen {
        let proof = match (&self.holder, self.ended) {
            (Some(_), _) => Proof::Alive,
            (None, Some(Ended::Released)) => Proof::Released,
            (None, Some(Ended::Expired | Ended::Forced) | None) => Proof::Absent,
        };
        let mut seen = Seen {
            epoch: (self.epoch > Epoch::ZERO).then_some(self.epoch),
            proof,
            cooldown: self.cooldown,
            reserved_for: self.reserved_for.clone(),
            ..Seen::nothing()
        };
        if let Some(holder) = &self.holder {
            seen.holder =
                Some(Holder { id: holder.who.id.clone(), incarnation: Some(holder.who.incarnation) });
            seen.ttl = Some(holder.ttl);
            seen.priority = Some(holder.priority);
            seen.acquired = Some(holder.acquired);
            seen.metadata = holder.metadata.clone();
        }
        seen
    }
}
