//! The candidates of this process, and what each of them has.
//!
//! A candidate that leads is here until it has released, or its session has ended. Its grant counts from the last keepalive that was
//! answered; one that nobody has renewed for a whole ttl is over, whatever else its session leads. A candidate that has gone is here until
//! the cluster knows of it: until then it may wait in a queue, or lead by a claim whose answer was lost, for as long as others keep
//! its session alive.
//!
//! Bounded by the number of candidates in this process, and of claims by [`IN_FLIGHT_MAX`](crate::limits::IN_FLIGHT_MAX) for each.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_core::{Boot, ElectionName, Epoch, Grant, Incarnation};

use super::session::{Number, Session};
use crate::command::{Sequence, SessionId};

/// By election and start of the candidate.
#[derive(Default)]
pub(crate) struct Candidates(HashMap<(ElectionName, Incarnation), Candidacy>);

struct Candidacy {
    session: Arc<Session>,
    standing: Standing,
    /// Claims without an answer that the cluster may still apply.
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
    /// It has gone, and the cluster has not answered that it knows. Nothing else becomes of it.
    Retiring,
}

/// A candidate that has gone, and what the cluster is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) on: ElectionName,
    pub(crate) incarnation: Incarnation,
    /// Its claims without an answer.
    pub(crate) cancels: Vec<Sequence>,
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
    /// A claim leaves. Claims below the lowest number that is in flight do nothing any more once it has arrived.
    pub(crate) fn claims(
        &mut self,
        on: &ElectionName,
        incarnation: Incarnation,
        number: &Number,
        since: Boot,
    ) {
        let session = &number.session;
        let new = || Candidacy {
            session: Arc::clone(session),
            standing: Standing::Claiming { since },
            claims: Vec::new(),
        };
        let candidacy = self.0.entry((on.clone(), incarnation)).or_insert_with(new);
        if candidacy.session.id != session.id {
            *candidacy = new();
        }
        if candidacy.standing == Standing::Retiring {
            // It is back.
            candidacy.standing = Standing::Claiming { since };
        }
        let lowest = number.answered_below();
        candidacy.claims.retain(|claim| *claim >= lowest);
        candidacy.claims.push(number.sequence);
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
        if candidacy.standing == Standing::Retiring {
            return;
        }
        candidacy.standing = match granted {
            Some((epoch, counted_from)) => Standing::Leading { epoch, counted_from },
            None => Standing::Waiting,
        };
    }

    /// No answer came, and none is waited for.
    pub(crate) fn unanswered(&mut self, on: &ElectionName, incarnation: Incarnation, sent: Boot) {
        if let Some(candidacy) = self.of(on, incarnation)
            && candidacy.standing != Standing::Retiring
        {
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
            Standing::Claiming { .. } | Standing::Waiting | Standing::Retiring => false,
        });
        if is_this {
            self.0.remove(&key);
        }
    }

    /// The candidate has gone. Its session, and what to tell the cluster, if it was known.
    pub(crate) fn retire(
        &mut self,
        on: &ElectionName,
        incarnation: Incarnation,
    ) -> Option<(Arc<Session>, Gone)> {
        let candidacy = self.of(on, incarnation)?;
        candidacy.standing = Standing::Retiring;
        let cancels = candidacy.claims.clone();
        Some((Arc::clone(&candidacy.session), Gone { on: on.clone(), incarnation, cancels }))
    }

    /// Those of this session that have gone, and of whom the cluster has not heard.
    pub(crate) fn retiring(&self, session: SessionId) -> Vec<Gone> {
        let gone = |((on, incarnation), candidacy): (&(ElectionName, Incarnation), &Candidacy)| {
            let is_gone = candidacy.standing == Standing::Retiring;
            let cancels = candidacy.claims.clone();
            is_gone.then(|| Gone { on: on.clone(), incarnation: *incarnation, cancels })
        };
        self.in_session(session).filter_map(gone).collect()
    }

    /// The cluster knows that this candidate has gone.
    pub(crate) fn retired(&mut self, session: SessionId, gone: &Gone) {
        let key = (gone.on.clone(), gone.incarnation);
        let is_gone = |candidacy: &Candidacy| {
            candidacy.session.id == session && candidacy.standing == Standing::Retiring
        };
        if self.0.get(&key).is_some_and(is_gone) {
            self.0.remove(&key);
        }
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
                Standing::Retiring => {}
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limits::IN_FLIGHT_MAX;

    const AT: Boot = Boot::from_nanos(5);

    fn session(id: u64) -> Arc<Session> {
        Arc::new(Session::new(SessionId(id), Duration::from_secs(3)))
    }

    fn who() -> (ElectionName, Incarnation) {
        (ElectionName::new("e").unwrap(), Incarnation::from_bits(1))
    }

    /// Or a candidate that a cluster did not answer for days would have more of them than fit into a command.
    #[tokio::test]
    async fn claims_that_can_do_nothing_any_more_are_not_kept() {
        let (session, mut candidates, (on, incarnation)) = (session(7), Candidates::default(), who());
        let _other = session.number().await;
        let mut last = None;
        for _ in 1..IN_FLIGHT_MAX {
            let number = session.number().await;
            candidates.claims(&on, incarnation, &number, AT);
            candidates.unanswered(&on, incarnation, AT);
            last = Some(number.sequence);
        }
        // Those before it may still arrive, because the first command may.
        let (_, gone) = candidates.retire(&on, incarnation).unwrap();
        assert_eq!(gone.cancels.len() as u64, IN_FLIGHT_MAX - 1);
        drop(_other);
        let number = session.number().await;
        candidates.claims(&on, incarnation, &number, AT);
        let (_, gone) = candidates.retire(&on, incarnation).unwrap();
        assert_eq!(gone.cancels, [number.sequence]);
        assert!(last < Some(number.sequence));
    }

    #[tokio::test]
    async fn a_candidate_that_has_gone_stays_so_until_the_cluster_knows_or_it_is_back() {
        let (session, mut candidates, (on, incarnation)) = (session(7), Candidates::default(), who());
        let number = session.number().await;
        candidates.claims(&on, incarnation, &number, AT);
        let (_, gone) = candidates.retire(&on, incarnation).unwrap();
        let claim = (session.id, number.sequence);
        candidates.answered(&on, incarnation, claim, Some((Epoch::ZERO, AT)));
        assert_eq!(candidates.retiring(session.id).len(), 1, "a late grant is no leadership");
        assert!(!candidates.is_waited_in(session.id), "nobody keeps the session alive for it");
        candidates.retired(SessionId(8), &gone);
        assert_eq!(candidates.retiring(session.id).len(), 1, "that was another session");
        candidates.retired(session.id, &gone);
        assert!(candidates.retiring(session.id).is_empty());

        candidates.claims(&on, incarnation, &number, AT);
        candidates.retire(&on, incarnation).unwrap();
        candidates.claims(&on, incarnation, &number, AT);
        candidates.retired(session.id, &gone);
        assert_eq!(candidates.0.len(), 1, "it is back, and stays");
    }
}
