//! Sessions, and commands that are applied once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellwether_cluster::At;
use bellwether_core::{ElectionName, Epoch, Incarnation};
use serde::{Deserialize, Serialize};

use super::{Change, Changes, State};
use crate::answer::{Answer, Ended, Refusal};
use crate::command::{Act, Sequence, SessionId};
use crate::limits::{IN_FLIGHT_MAX, LABEL_MAX_BYTES, SESSION_TTL, SESSIONS_MAX};
use crate::wire;

/// A client that is taken to be alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) nonce: u128,
    pub(super) ttl: Duration,
    pub(super) label: String,
    /// Commands below this one are not applied any more.
    answered_below: Sequence,
    /// What came of those from there on.
    answers: BTreeMap<Sequence, Remembered>,
    /// The elections that it leads or waits for. Follows from the elections.
    #[serde(skip)]
    pub(super) elections: BTreeSet<ElectionName>,
}

/// An answer in short: what an election looked like is not kept, a retry is shown what it looks like now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Remembered {
    Granted {
        #[serde(with = "wire")]
        epoch: Epoch,
        #[serde(with = "wire")]
        incarnation: Incarnation,
        after_crash: bool,
    },
    Denied,
    Done,
    Refused(Refusal),
}

impl State {
    pub(super) fn open_session(
        &mut self,
        at: At,
        nonce: u128,
        ttl: Duration,
        label: String,
        changes: &mut Changes,
    ) -> Result<Answer, Refusal> {
        if let Some(open) = self.nonces.get(&nonce) {
            return Ok(Answer::Opened(*open));
        }
        let (shortest, longest) = SESSION_TTL;
        if ttl < shortest || ttl > longest || label.len() > LABEL_MAX_BYTES {
            return Err(Refusal::Malformed(format!(
                "a session has a ttl from {shortest:?} to {longest:?} and a label of at most {LABEL_MAX_BYTES} bytes"
            )));
        }
        if self.sessions.len() >= SESSIONS_MAX {
            return Err(Refusal::Limit(format!(
                "the cluster has {SESSIONS_MAX} sessions: end some clients, or wait until unused sessions expire"
            )));
        }
        let session = SessionId(at.index);
        self.nonces.insert(nonce, session);
        let (answered_below, answers, elections) = (Sequence(0), BTreeMap::new(), BTreeSet::new());
        self.sessions.insert(session, Session { nonce, ttl, label, answered_below, answers, elections });
        changes.push(Change::SessionOpened { session, ttl });
        Ok(Answer::Opened(session))
    }

    /// Ends a session, and every leadership and every wait in it.
    pub(super) fn end_session(
        &mut self,
        id: SessionId,
        how: Ended,
        at: At,
        changes: &mut Changes,
    ) -> Result<Answer, Refusal> {
        let session = self.sessions.remove(&id).ok_or(Refusal::NoSuchSession)?;
        self.nonces.remove(&session.nonce);
        for on in session.elections {
            let Some(election) = self.elections.get_mut(&on) else { continue };
            self.waiting -= election.leave_queue(|waiting| waiting.session == id);
            if election.holder.as_ref().is_some_and(|holder| holder.session == id) {
                election.end(at, how);
                changes.push(Change::Election(on));
            }
        }
        changes.push(Change::SessionEnded(id));
        Ok(Answer::Done)
    }

    /// Applies a command of a session, unless that has been done.
    pub(super) fn in_session(
        &mut self,
        at: At,
        id: SessionId,
        sequence: Sequence,
        answered_below: Sequence,
        act: Act,
        changes: &mut Changes,
    ) -> Result<Answer, Refusal> {
        let session = self.sessions.get_mut(&id).ok_or(Refusal::NoSuchSession)?;
        if sequence < session.answered_below {
            return Err(Refusal::Forgotten);
        }
        if let Some(remembered) = session.answers.get(&sequence).cloned() {
            return self.again(&act, remembered);
        }
        let below = answered_below.max(session.answered_below);
        if sequence < below {
            return Err(Refusal::Malformed(
                "a command cannot come before those that are answered".to_owned(),
            ));
        }
        if sequence.0 - below.0 >= IN_FLIGHT_MAX {
            return Err(Refusal::TooManyInFlight);
        }
        session.answered_below = below;
        session.answers = session.answers.split_off(&below);
        let incarnation = match &act {
            Act::Campaign(campaign) => Some(campaign.who.incarnation),
            _ => None,
        };
        let answer = self.act(at, id, sequence, act, changes);
        let remembered = match (&answer, incarnation) {
            (Ok(Answer::Granted { epoch, after_crash }), Some(incarnation)) => {
                Remembered::Granted { epoch: *epoch, incarnation, after_crash: *after_crash }
            }
            (Ok(Answer::Denied(_)), _) => Remembered::Denied,
            (Ok(_), _) => Remembered::Done,
            (Err(refusal), _) => Remembered::Refused(refusal.clone()),
        };
        if let Some(session) = self.sessions.get_mut(&id) {
            session.answers.insert(sequence, remembered);
        }
        answer
    }

    /// These commands of a session do nothing if they are applied from now on.
    pub(super) fn cancel(&mut self, id: SessionId, cancels: &[Sequence]) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let below = session.answered_below;
        for sequence in cancels.iter().filter(|sequence| **sequence >= below) {
            if sequence.0 - below.0 < IN_FLIGHT_MAX {
                session.answers.entry(*sequence).or_insert(Remembered::Refused(Refusal::Forgotten));
            }
        }
    }

    fn again(&self, act: &Act, remembered: Remembered) -> Result<Answer, Refusal> {
        let on = match act {
            Act::Campaign(campaign) => &campaign.on,
            Act::Retire { on, .. } | Act::Resign { on, .. } | Act::Proclaim { on, .. } => on,
        };
        match remembered {
            Remembered::Granted { epoch, incarnation, after_crash } => {
                let view = self.view(on);
                let holds = view.holder.as_ref().is_some_and(|holder| holder.who.incarnation == incarnation);
                // What was granted and has ended since is no grant any more.
                let lasts = holds && view.epoch == epoch;
                Ok(if lasts { Answer::Granted { epoch, after_crash } } else { Answer::Denied(view.into()) })
            }
            Remembered::Denied => Ok(Answer::Denied(self.view(on).into())),
            Remembered::Done => Ok(Answer::Done),
            Remembered::Refused(refusal) => Err(refusal),
        }
    }
}
