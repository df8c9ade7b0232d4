//! The candidates of this process, and what each of them has.
//!
//! A candidate that leads is here until it has released, or its session has ended. Its grant counts from the last keepalive that was
//! answered; one that nobody has renewed for a whole ttl is over, whatever else its session leads.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_core::{Boot, ElectionName, Epoch, Grant, Incarnation};

use super::session::Session;
use crate::command::{Sequence, SessionId};

/// By election and start of the candidate.
#[derive(Default)]
pub(crate) struct Candidates(HashMap<(ElectionName, Incarnation), Candidacy>);

struct Candidacy {
    session: Arc<Session>,
    standing: Standing,
    /// Claims without an answer.
    claims: Vec<Sequence>,
}

/// What a candidate has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It has claimed, and there is no answer yet, or none came: it may lead, or wait, or neither.
    Claiming {
        /// The instant before the claim left.
        since: Boot,
    },
    /// It waits in the queue.
    Waiting,
    /// It leads, from this instant on for a ttl.
    Leading { epoch: Epoch, counted_from: Boot },
    /// It led, and nobody has renewed that for a ttl: it is being resigned, and cannot be renewed.
    Ending { epoch: Epoch },
}

/// A leadership that nobody in this process believes in any more.
pub(crate) struct Overdue {
    pub(crate) on: ElectionName,
    pub(crate) epoch: Epoch,
    pub(crate) incarnation: Incarnation,
}

/// What ended with a session.
#[derive(Default)]
pub(crate) struct EndedWith {
    pub(crate) led: Vec<ElectionName>,
    pub(crate) waited: Vec<ElectionName>,
}

impl Candidates {
    /// A claim leaves.
    pub(crate) fn claims(
        &mut self,
        on: &ElectionName,
        incarnation: Incarnation,
        session: &Arc<Session>,
        sequence: Sequence,
        since: Boot,
    ) {
        let new = || Candidacy {
            session: Arc::clone(session),
            standing: Standing::Claiming { since },
            claims: Vec::new(),
        };
        let candidacy = self.0.entry((on.clone(), incarnation)).or_insert_with(new);
        if candidacy.session.id != session.id {
            *candidacy = new();
        }
        candidacy.claims.push(sequence);
    }

    /// The answer to a claim.
    pub(crate) fn answered(
        &mut self,
        on: &ElectionName,
        incarnation: Incarnation,
        (session, sequence): (SessionId, Sequence),
        granted: Option<(Epoch, Boot)>,
    ) {
        let Some(candidacy) = self.of(on, incarnation).filter(|candidacy| candidacy.session.id == session)
        else {
            return;
        };
        candidacy.claims.retain(|other| *other != sequence);
        candidacy.standing = match granted {
            Some((epoch, counted_from)) => Standing::Leading { epoch, counted_from },
            None => Standing::Waiting,
        };
    }

    /// No answer came, and none is waited for.
    pub(crate) fn unanswered(&mut self, on: &ElectionName, incarnation: Incarnation, sent: Boot) {
        if let Some(candidacy) = self.of(on, incarnation) {
            candidacy.standing = Standing::Claiming { since: sent };
        }
    }

    /// The session in which exactly this leadership is held.
    pub(crate) fn led_in(&self, on: &ElectionName, grant: &Grant) -> Option<Arc<Session>> {
        let candidacy = self.0.get(&(on.clone(), grant.incarnation))?;
        let is_led = matches!(candidacy.standing, Standing::Leading { epoch, .. } if epoch == grant.epoch);
        (is_led && !candidacy.session.is_over()).then(|| Arc::clone(&candidacy.session))
    }

    /// The session of a candidate, whatever it has.
    pub(crate) fn session_of(&self, on: &ElectionName, incarnation: Incarnation) -> Option<Arc<Session>> {
        self.0.get(&(on.clone(), incarnation)).map(|candidacy| Arc::clone(&candidacy.session))
    }

    /// A keepalive that left at `left` was answered for this leadership.
    pub(crate) fn renewed(&mut self, on: &ElectionName, grant: &Grant, left: Boot) {
        if let Some(candidacy) = self.of(on, grant.incarnation)
            && let Standing::Leading { epoch, counted_from } = &mut candidacy.standing
            && *epoch == grant.epoch
        {
            *counted_from = left.max(*counted_from);
        }
    }

    /// This leadership is over.
    pub(crate) fn released(&mut self, on: &ElectionName, epoch: Epoch, incarnation: Incarnation) {
        let key = (on.clone(), incarnation);
        let is_this = self.0.get(&key).is_some_and(|candidacy| match candidacy.standing {
            Standing::Leading { epoch: led, .. } | Standing::Ending { epoch: led } => led <= epoch,
            Standing::Claiming { .. } | Standing::Waiting => false,
        });
        if is_this {
            self.0.remove(&key);
        }
    }

    /// The candidate has gone. Its session and its claims without an answer, if it was known.
    pub(crate) fn retire(
        &mut self,
        on: &ElectionName,
        incarnation: Incarnation,
    ) -> Option<(Arc<Session>, Vec<Sequence>)> {
        let candidacy = self.0.remove(&(on.clone(), incarnation))?;
        Some((candidacy.session, candidacy.claims))
    }

    /// Whether somebody waits in this session, and so needs it to be kept alive.
    pub(crate) fn is_waited_in(&self, session: SessionId) -> bool {
        self.in_session(session).any(|(_, candidacy)| candidacy.standing == Standing::Waiting)
    }

    /// The leaderships of this session that count from more than a ttl ago. From now on nobody can renew them.
    pub(crate) fn overdue(&mut self, session: &Session, now: Boot) -> Vec<Overdue> {
        let mut overdue = Vec::new();
        for ((on, incarnation), candidacy) in &mut self.0 {
            let epoch = match candidacy.standing {
                _ if candidacy.session.id != session.id => continue,
                Standing::Leading { epoch, counted_from } if now >= counted_from + session.ttl => epoch,
                Standing::Ending { epoch } => epoch,
                _ => continue,
            };
            candidacy.standing = Standing::Ending { epoch };
            overdue.push(Overdue { on: on.clone(), epoch, incarnation: *incarnation });
        }
        overdue
    }

    /// The starts of candidates whose claim on this election was never answered, and left more than a ttl ago.
    pub(crate) fn unresolved(&self, session: &Session, on: &ElectionName, now: Boot) -> Vec<Incarnation> {
        let unresolved = |((other, incarnation), candidacy): (&(ElectionName, Incarnation), &Candidacy)| {
            let is_old =
                matches!(candidacy.standing, Standing::Claiming { since } if now >= since + session.ttl);
            (other == on && is_old).then_some(*incarnation)
        };
        self.in_session(session.id).filter_map(unresolved).collect()
    }

    /// The session has ended, and everything in it.
    pub(crate) fn ended(&mut self, session: SessionId) -> EndedWith {
        let mut ended = EndedWith::default();
        self.0.retain(|(on, _), candidacy| {
            let is_in_it = candidacy.session.id == session;
            match candidacy.standing {
                _ if !is_in_it => {}
                Standing::Leading { .. } => ended.led.push(on.clone()),
                Standing::Claiming { .. } | Standing::Waiting | Standing::Ending { .. } => {
                    ended.waited.push(on.clone());
                }
            }
            !is_in_it
        });
        ended
    }

    fn of(&mut self, on: &ElectionName, incarnation: Incarnation) -> Option<&mut Candidacy> {
        self.0.get_mut(&(on.clone(), incarnation))
    }

    fn in_session(
        &self,
        session: SessionId,
    ) -> impl Iterator<Item = (&(ElectionName, Incarnation), &Candidacy)> {
        self.0.iter().filter(move |(_, candidacy)| candidacy.session.id == session)
    }
}
