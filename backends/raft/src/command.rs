//! The commands of the replicated state machine, as they stand in the log.
//!
//! A command is one version byte and the command in postcard. The bytes are in logs on disk and are read by all nodes, so a variant or a
//! field is never changed or moved: new variants go at the end of an enum, and a command that needs another shape is a new variant.
//!
//! A node that reads a version or a variant that it does not know answers [`Refusal::Malformed`](crate::answer::Refusal::Malformed), and so
//! do all nodes of its release. Nodes of different releases would disagree, so a new variant is proposed only when every member runs a
//! release that knows it; until then the old ones are used.
//!
//! Who may propose what is checked where commands come in, not here: [`Command::is_for_clients`] says which are for anybody outside the
//! Raft leader's own service.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_core::{Ask, Candidate, CandidateId, ElectionName, Epoch, Incarnation, Request, Wall};
use serde::{Deserialize, Serialize};

use crate::limits::COMMAND_MAX_BYTES;
use crate::wire;

/// The first byte of every command.
pub const VERSION: u8 = 1;

/// A session: the log index of the entry that opened it, so no two sessions of a cluster ever have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(pub u64);

/// The place of a command among those of its session. The first is 1; every command gets the next, and a retry keeps that of the first try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Sequence(pub u64);

/// Everything that changes the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Opens a session. Answered by [`Answer::Opened`](crate::answer::Answer::Opened).
    OpenSession {
        /// Random: a retry with the same nonce finds the session that the first try opened.
        nonce: u128,
        /// How long the session lasts without a keepalive; also the ttl of every grant in it.
        ttl: Duration,
        /// Who it is, for people.
        label: String,
    },
    /// The client ends its session, with every leadership in it: their work has ended.
    CloseSession(SessionId),
    /// The Raft leader ends a session whose ttl has passed without a keepalive.
    ExpireSession {
        /// The session.
        session: SessionId,
        /// The term in which the leader found that out. In another term, others may have acknowledged keepalives: refused.
        term: u64,
    },
    /// A command of a session, applied once however often it is proposed.
    InSession {
        /// The session.
        session: SessionId,
        /// Its number.
        sequence: Sequence,
        /// No command below this one will be proposed again: its answer arrived, or nobody wants it. At most [`IN_FLIGHT_MAX`](crate::limits::IN_FLIGHT_MAX)
        /// below `sequence`.
        answered_below: Sequence,
        /// The command.
        act: Act,
    },
    /// Asks something of a leader.
    Request {
        /// The election.
        #[serde(with = "wire")]
        on: ElectionName,
        /// The leadership that is meant.
        #[serde(with = "wire")]
        epoch: Epoch,
        /// What is asked.
        ask: AskLine,
    },
    /// Writes a leadership into the history.
    Remember {
        /// The election.
        #[serde(with = "wire")]
        on: ElectionName,
        /// The leadership.
        past: PastLine,
    },
    /// Creates a note, unless there is one. Answered by [`Answer::Created`](crate::answer::Answer::Created) or [`Answer::Exists`](crate::answer::Answer::Exists).
    CreateOnce {
        /// The note's name; elections have names of their own.
        #[serde(with = "wire")]
        name: ElectionName,
        /// Its content.
        bytes: Vec<u8>,
    },
    /// An operator says that this leader is dead, and ends its leadership at once. If it is not, two lead: the guarantee does not cover this.
    DangerForceRelease {
        /// The election.
        #[serde(with = "wire")]
        on: ElectionName,
        /// The leadership that is meant.
        #[serde(with = "wire")]
        epoch: Epoch,
    },
    /// The Raft leader has timed a reservation.
    EndReservation {
        /// The election.
        #[serde(with = "wire")]
        on: ElectionName,
        /// The log index that made the reservation.
        since: u64,
    },
    /// The Raft leader has timed a cooldown.
    EndCooldown {
        /// The election.
        #[serde(with = "wire")]
        on: ElectionName,
        /// Whose cooldown.
        #[serde(with = "wire")]
        id: CandidateId,
        /// The log index that began it.
        since: u64,
    },
    /// Forgets an election that nobody holds and nobody waits for, with its epochs: for names that are never used again.
    DangerDiscard {
        /// The election.
        #[serde(with = "wire")]
        on: ElectionName,
    },
}

/// What a client does in its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Tries to lead. Answered by [`Answer::Granted`](crate::answer::Answer::Granted), or by [`Answer::Denied`](crate::answer::Answer::Denied): the candidate waits in the queue then.
    Campaign(Campaign),
    /// The candidate leaves the election: the queue, and the lead if it still has it.
    Retire {
        /// The election.
        #[serde(with = "wire")]
        on: ElectionName,
        /// Which start of the candidate.
        #[serde(with = "wire")]
        incarnation: Incarnation,
        /// Campaigns of this candidate that have no answer yet. They do nothing if they come later.
        cancels: Vec<Sequence>,
    },
    /// Releases exactly this leadership. Denied if it is not the current one.
    Resign {
        /// The election.
        #[serde(with = "wire")]
        on: ElectionName,
        /// The leadership.
        #[serde(with = "wire")]
        epoch: Epoch,
        /// The start of the candidate that holds it.
        #[serde(with = "wire")]
        incarnation: Incarnation,
        /// Reserve the election for that candidate, for that long.
        reserve_for: Option<ReserveFor>,
        /// How long this id stays away after the release.
        cooldown: Option<Duration>,
    },
    /// Replaces what the leader publishes about itself. Denied if this is not the current leadership.
    Proclaim {
        /// The election.
        #[serde(with = "wire")]
        on: ElectionName,
        /// The leadership.
        #[serde(with = "wire")]
        epoch: Epoch,
        /// The start of the candidate that holds it.
        #[serde(with = "wire")]
        incarnation: Incarnation,
        /// What it publishes.
        metadata: BTreeMap<String, String>,
    },
}

/// A bid, without what only the bidder's machine can understand. The ttl is that of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Campaign {
    /// The election.
    #[serde(with = "wire")]
    pub on: ElectionName,
    /// Who wants to lead.
    #[serde(with = "wire")]
    pub who: Candidate,
    /// The new epoch must be above this.
    #[serde(with = "wire")]
    pub floor: Epoch,
    /// Its place in the queue, and shown to others when it leads.
    pub priority: i32,
    /// What it publishes about itself when it leads.
    pub metadata: BTreeMap<String, String>,
    /// The longest cooldown of its id that it respects; `None` ignores cooldowns.
    pub cooldown: Option<Duration>,
    /// Takes over from another start of its own id: the guarantee does not cover this.
    pub danger_reclaim: bool,
    /// The bidder's wall clock, for people.
    #[serde(with = "wire")]
    pub wall: Wall,
}

/// For whom an election is kept after a release, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReserveFor {
    /// The candidate.
    #[serde(with = "wire")]
    pub id: CandidateId,
    /// For how long from when the release is applied.
    pub span: Duration,
}

/// [`Ask`], as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AskLine {
    /// [`Ask::StepDown`].
    StepDown {
        /// The successor.
        #[serde(with = "wire")]
        to: Option<CandidateId>,
    },
    /// [`Ask::StepDownLater`].
    StepDownLater {
        /// The successor.
        #[serde(with = "wire")]
        to: Option<CandidateId>,
        /// How much longer to lead.
        after: Duration,
    },
    /// [`Ask::Preempt`].
    Preempt {
        /// Who asks.
        #[serde(with = "wire")]
        by: CandidateId,
        /// Its priority.
        priority: i32,
    },
}

/// [`Past`](bellwether_backend::Past), as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastLine {
    /// Its number.
    #[serde(with = "wire")]
    pub epoch: Epoch,
    /// Who led.
    #[serde(with = "wire")]
    pub id: CandidateId,
    /// Which start of it.
    #[serde(with = "wire")]
    pub incarnation: Option<Incarnation>,
    /// From when, by the leader's wall clock.
    #[serde(with = "wire")]
    pub since: Wall,
    /// Until when, by the leader's wall clock.
    #[serde(with = "wire")]
    pub until: Option<Wall>,
    /// How it ended.
    pub ended: Option<String>,
}

impl Command {
    /// The bytes for the log.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![VERSION]).expect("commands have nothing that postcard cannot write")
    }

    /// Reads what [`encode`](Command::encode) wrote, and nothing else.
    ///
    /// # Errors
    /// When the bytes are no command that this release knows: why.
    pub fn decode(bytes: &[u8]) -> Result<Command, String> {
        if bytes.len() > COMMAND_MAX_BYTES {
            return Err(format!("a command has at most {COMMAND_MAX_BYTES} bytes, not {}", bytes.len()));
        }
        match bytes {
            [VERSION, rest @ ..] => match postcard::take_from_bytes(rest) {
                Ok((command, [])) => Ok(command),
                Ok((_, rest)) => Err(format!("{} bytes follow the command", rest.len())),
                Err(error) => Err(format!("the command cannot be read: {error}")),
            },
            [other, ..] => Err(format!("the command has version {other}, and this node knows {VERSION}")),
            [] => Err("the command is empty".to_owned()),
        }
    }

    /// Whether a client or an operator may propose this. The other commands are decisions of the Raft leader's timers, and of nobody else.
    pub fn is_for_clients(&self) -> bool {
        match self {
            Command::OpenSession { .. }
            | Command::CloseSession(_)
            | Command::InSession { .. }
            | Command::Request { .. }
            | Command::Remember { .. }
            | Command::CreateOnce { .. }
            | Command::DangerForceRelease { .. }
            | Command::DangerDiscard { .. } => true,
            Command::ExpireSession { .. } | Command::EndReservation { .. } | Command::EndCooldown { .. } => {
                false
            }
        }
    }

    /// The session whose life this command proves, if it is one that is granted time by it: the Raft leader counts such a command as a
    /// keepalive before it proposes it ([`Keepalives::arrived`](crate::keepalive::Keepalives::arrived)).
    pub fn counts_as_keepalive(&self) -> Option<SessionId> {
        match self {
            Command::InSession { session, act: Act::Campaign(_), .. } => Some(*session),
            _ => None,
        }
    }
}

impl From<&Ask> for AskLine {
    fn from(ask: &Ask) -> AskLine {
        match ask.clone() {
            Ask::StepDown { to } => AskLine::StepDown { to },
            Ask::StepDownLater { to, after } => AskLine::StepDownLater { to, after },
            Ask::Preempt { by, priority } => AskLine::Preempt { by, priority },
        }
    }
}

impl From<AskLine> for Ask {
    fn from(line: AskLine) -> Ask {
        match line {
            AskLine::StepDown { to } => Ask::StepDown { to },
            AskLine::StepDownLater { to, after } => Ask::StepDownLater { to, after },
            AskLine::Preempt { by, priority } => Ask::Preempt { by, priority },
        }
    }
}

impl AskLine {
    /// The request that this is, to the leadership of that epoch.
    pub fn request(&self, epoch: Epoch) -> Request {
        Request { epoch, what: self.clone().into() }
    }
}

impl From<&bellwether_backend::Past> for PastLine {
    fn from(past: &bellwether_backend::Past) -> PastLine {
        let bellwether_backend::Past { epoch, id, incarnation, since, until, ended } = past.clone();
        PastLine { epoch, id, incarnation, since, until, ended }
    }
}

impl From<PastLine> for bellwether_backend::Past {
    fn from(line: PastLine) -> bellwether_backend::Past {
        let PastLine { epoch, id, incarnation, since, until, ended } = line;
        bellwether_backend::Past { epoch, id, incarnation, since, until, ended }
    }
}

#[cfg(test)]
mod tests;
