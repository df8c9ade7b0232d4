//! The replicated state machine: sessions, elections, history and notes.
//!
//! It owns what all nodes agree on, and decides nothing by time. What needs a clock, the Raft leader's [`keepalive`](crate::keepalive)
//! table decides, and proposes as a command. So the same log gives the same state on every node, to the last byte of a snapshot.
//!
//! What holds:
//! - An election has at most one holder, and a holder has an open session.
//! - Epochs of an election only rise: `max(recovery generation << 45 | log index, highest issued + 1, bidder's floor + 1)`, below 2^53.
//! - Nobody leads who did not ask: only a campaign makes a holder.
//! - Another start of a candidate's id is another candidate, unless it reclaims at its own risk.
//! - A command of a session is applied once. For each session the answers of its last [`IN_FLIGHT_MAX`](crate::limits::IN_FLIGHT_MAX) commands are kept, in short: a retry is
//!   told again what came of the first try, or what the election looks like now.
//! - A refused command changes nothing.
//!
//! Leaves to others: who may connect and propose, when a session is over, and waking those who wait.

mod acts;
mod election;
mod events;
mod history;
mod session;
mod snapshot;

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_backend::{Past, check_note};
use bellwether_cluster::{At, CorruptSnapshot, StateMachine};
use bellwether_core::{Candidate, CandidateId, ElectionName, Epoch};

use self::election::Election;
use self::events::Events;
pub use self::events::{Compacted, Event};
use self::session::Session;
use crate::answer::{Answer, ElectionView, Ended, Refusal};
use crate::command::{AskLine, Command, SessionId};
use crate::limits::{ELECTIONS_MAX, NOTES_MAX};

/// The state of the election service.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The index of the last entry that changed an election.
    revision: u64,
    sessions: BTreeMap<SessionId, Session>,
    elections: BTreeMap<ElectionName, Election>,
    notes: BTreeMap<ElectionName, Vec<u8>>,
    /// The open session of every nonce. Follows from `sessions`.
    nonces: BTreeMap<u128, SessionId>,
    /// How many candidates wait. Follows from `elections`.
    waiting: usize,
    /// How many past leaderships are kept. Follows from `elections`.
    pasts: usize,
    /// For watchers of this node; no part of the agreed state.
    events: Events,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// For whoever proposed it.
    pub answer: Answer,
    /// For the Raft leader's [`keepalive`](crate::keepalive) table, and for watchers.
    pub changes: Vec<Change>,
}

/// Something that a command changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A session was opened.
    SessionOpened {
        /// The session.
        session: SessionId,
        /// Its ttl.
        ttl: Duration,
    },
    /// A session has ended.
    SessionEnded(SessionId),
    /// An election is kept for one candidate.
    Reserved(Reserved),
    /// It is not any more.
    ReservationEnded {
        /// The election.
        on: ElectionName,
        /// The log index that made the reservation.
        since: u64,
    },
    /// A candidate has to stay away.
    CoolingDown(CoolingDown),
    /// It need not any more.
    CooldownEnded {
        /// The election.
        on: ElectionName,
        /// The candidate.
        id: CandidateId,
        /// The log index that began it.
        since: u64,
    },
    /// What [`State::view`] shows of this election is different now.
    Election(ElectionName),
    /// The leader was asked something.
    Requested {
        /// The election.
        on: ElectionName,
        /// The leadership that is meant.
        epoch: Epoch,
        /// What.
        ask: AskLine,
    },
}

/// A reservation that the Raft leader times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// The election.
    pub on: ElectionName,
    /// The log index that made it.
    pub since: u64,
    /// How long it lasts.
    pub span: Duration,
}

/// A cooldown that the Raft leader times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoolingDown {
    /// The election.
    pub on: ElectionName,
    /// Who stays away.
    pub id: CandidateId,
    /// The log index that began it.
    pub since: u64,
    /// How long it lasts.
    pub span: Duration,
}

/// A candidate that waits for an election to be free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingView {
    /// The candidate.
    pub who: Candidate,
    /// Its session.
    pub session: SessionId,
    /// Its priority.
    pub priority: i32,
}

/// Collects what a command changes.
type Changes = Vec<Change>;

impl State {
    /// The state of a new cluster.
    pub fn new() -> State {
        State::default()
    }

    /// Applies a command. Bytes that are none change nothing, and are answered by a refusal.
    pub fn step(&mut self, at: At, command: &[u8]) -> Applied {
        let mut changes = Changes::new();
        let answer = match Command::decode(command) {
            Ok(command) => self.apply(at, command, &mut changes).unwrap_or_else(Answer::Refused),
            Err(why) => Answer::Refused(Refusal::Malformed(why)),
        };
        self.note_changes(at.index, &changes);
        Applied { answer, changes }
    }

    /// The index of the last entry that changed an election.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// What is known of an election; of one that never was, as of one that nobody has led.
    pub fn view(&self, on: &ElectionName) -> ElectionView {
        self.elections.get(on).map(Election::view).unwrap_or_default()
    }

    /// The elections, by name.
    pub fn elections(&self) -> impl Iterator<Item = &ElectionName> {
        self.elections.keys()
    }

    /// Who waits for an election, in the order in which they are to be woken: by priority, then by who asked first.
    pub fn waiting(&self, on: &ElectionName) -> Vec<WaitingView> {
        self.elections.get(on).map(Election::waiting).unwrap_or_default()
    }

    /// What was last asked of the current leader.
    pub fn request(&self, on: &ElectionName) -> Option<&AskLine> {
        self.elections.get(on).and_then(|election| election.request.as_ref())
    }

    /// Past leaderships, oldest first.
    pub fn history(&self, on: &ElectionName) -> Vec<Past> {
        let lines = self.elections.get(on).map(|election| election.history.clone()).unwrap_or_default();
        lines.into_iter().map(Past::from).collect()
    }

    /// The content of a note.
    pub fn note(&self, name: &ElectionName) -> Option<&[u8]> {
        self.notes.get(name).map(Vec::as_slice)
    }

    /// The ttl of an open session.
    pub fn session_ttl(&self, session: SessionId) -> Option<Duration> {
        self.sessions.get(&session).map(|session| session.ttl)
    }

    /// What an open session leads, with the epochs; `None` if there is no such session.
    pub fn led_by(&self, session: SessionId) -> Option<Vec<(ElectionName, Epoch)>> {
        let elections = &self.sessions.get(&session)?.elections;
        let led = |on: &ElectionName| {
            let election = self.elections.get(on)?;
            let holder = election.holder.as_ref().filter(|holder| holder.session == session);
            holder.map(|_| (on.clone(), election.epoch))
        };
        Some(elections.iter().filter_map(led).collect())
    }

    /// The open sessions with their ttl and label.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, Duration, &str)> {
        self.sessions.iter().map(|(id, session)| (*id, session.ttl, session.label.as_str()))
    }

    /// Every reservation.
    pub fn reservations(&self) -> impl Iterator<Item = Reserved> {
        self.elections.iter().filter_map(|(on, election)| election.reserved(on))
    }

    /// Every cooldown.
    pub fn cooldowns(&self) -> impl Iterator<Item = CoolingDown> {
        self.elections.iter().flat_map(|(on, election)| election.cooling_down(on))
    }

    /// What happened after that revision, oldest first.
    ///
    /// # Errors
    /// When not everything since then is remembered: list what you follow, and go on from [`revision`](State::revision).
    pub fn events_after(&self, revision: u64) -> Result<impl Iterator<Item = &Event>, Compacted> {
        self.events.after(revision)
    }

    fn apply(&mut self, at: At, command: Command, changes: &mut Changes) -> Result<Answer, Refusal> {
        match command {
            Command::OpenSession { nonce, ttl, label } => self.open_session(at, nonce, ttl, label, changes),
            Command::CloseSession(session) => self.end_session(session, Ended::Released, at, changes),
            Command::ExpireSession { session, term } => {
                if term != at.term {
                    return Err(Refusal::OtherTerm);
                }
                self.end_session(session, Ended::Expired, at, changes)
            }
            Command::InSession { session, sequence, answered_below, act } => {
                self.in_session(at, session, sequence, answered_below, act, changes)
            }
            Command::Request { on, epoch, ask } => Ok(self.ask(at, on, epoch, ask, changes)),
            Command::Remember { on, past } => self.remember(on, past),
            Command::CreateOnce { name, bytes } => self.create_once(name, bytes),
            Command::DangerForceRelease { on, epoch } => Ok(self.force_release(at, on, epoch, changes)),
            Command::EndReservation { on, since } => Ok(self.end_reservation(at, on, since, changes)),
            Command::EndCooldown { on, id, since } => Ok(self.end_cooldown(on, id, since, changes)),
            Command::DangerDiscard { on } => Ok(self.discard(on, changes)),
        }
    }

    fn create_once(&mut self, name: ElectionName, bytes: Vec<u8>) -> Result<Answer, Refusal> {
        if let Some(content) = self.notes.get(&name) {
            return Ok(Answer::Exists(content.clone()));
        }
        check_note(&bytes).map_err(Refusal::Malformed)?;
        if self.notes.len() >= NOTES_MAX {
            return Err(Refusal::Limit(format!("the cluster keeps at most {NOTES_MAX} notes")));
        }
        self.notes.insert(name, bytes);
        Ok(Answer::Created)
    }

    /// The election of this name, which is made if there is room.
    fn election(&mut self, on: &ElectionName) -> Result<&mut Election, Refusal> {
        if !self.elections.contains_key(on) && self.elections.len() >= ELECTIONS_MAX {
            return Err(Refusal::Limit(format!(
                "the cluster has {ELECTIONS_MAX} elections: discard some that are not used any more"
            )));
        }
        Ok(self.elections.entry(on.clone()).or_default())
    }

    fn note_changes(&mut self, index: u64, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Election(on) => {
                    self.revision = index;
                    self.events.push(Event { revision: index, on: on.clone(), request: None });
                }
                Change::Requested { on, epoch, ask } => {
                    self.revision = index;
                    let request = Some(ask.request(*epoch));
                    self.events.push(Event { revision: index, on: on.clone(), request });
                }
                Change::SessionOpened { .. }
                | Change::SessionEnded(_)
                | Change::Reserved(_)
                | Change::ReservationEnded { .. }
                | Change::CoolingDown(_)
                | Change::CooldownEnded { .. } => {}
            }
        }
    }
}

/// Without the changes, for whoever needs the state alone.
impl StateMachine for State {
    fn apply(&mut self, at: At, command: &[u8]) -> Vec<u8> {
        self.step(at, command).answer.encode()
    }

    fn snapshot(&self) -> Vec<u8> {
        self.to_bytes()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), CorruptSnapshot> {
        *self = State::from_bytes(snapshot)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
