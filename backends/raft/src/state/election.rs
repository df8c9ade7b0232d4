//! One election: who leads, who waits, for whom it is kept, and who stays away.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_cluster::At;
use bellwether_core::{Candidate, CandidateId, ElectionName, Epoch, Incarnation, Wall};
use serde::{Deserialize, Serialize};

use super::{Change, Changes, CoolingDown, Reserved, State, WaitingView};
use crate::answer::{Answer, ElectionView, Ended, HolderView};
use crate::command::{AskLine, PastLine, Sequence, SessionId};
use crate::wire;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Election {
    /// The log index of the last change that is shown.
    pub(super) revision: u64,
    /// The highest epoch that was issued: that of the holder, if there is one.
    #[serde(with = "wire")]
    pub(super) epoch: Epoch,
    pub(super) holder: Option<Leader>,
    /// How the last leadership ended, while none follows.
    ended: Option<Ended>,
    pub(super) reservation: Option<Reservation>,
    #[serde(with = "wire::map")]
    pub(super) cooldowns: BTreeMap<CandidateId, Cooldown>,
    /// In the order in which they are to be woken.
    queue: Vec<Waiting>,
    /// The last thing that was asked of the holder.
    pub(super) request: Option<AskLine>,
    /// By epoch.
    pub(super) history: Vec<PastLine>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Leader {
    #[serde(with = "wire")]
    pub(super) who: Candidate,
    pub(super) session: SessionId,
    /// Of its campaign: an earlier one that comes late does not count.
    pub(super) sequence: Sequence,
    pub(super) ttl: Duration,
    pub(super) priority: i32,
    #[serde(with = "wire")]
    pub(super) acquired: Wall,
    pub(super) metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reservation {
    #[serde(with = "wire")]
    pub(super) id: CandidateId,
    pub(super) span: Duration,
    pub(super) since: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cooldown {
    /// The start of the candidate that knows of it, and counts by its own clock.
    #[serde(with = "wire")]
    pub(super) told: Incarnation,
    pub(super) span: Duration,
    pub(super) since: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Waiting {
    #[serde(with = "wire")]
    pub(super) who: Candidate,
    pub(super) session: SessionId,
    pub(super) priority: i32,
    /// The log index of its first campaign.
    pub(super) asked: u64,
}

impl Election {
    pub(super) fn view(&self) -> ElectionView {
        let holder = self.holder.as_ref().map(|holder| HolderView {
            who: holder.who.clone(),
            session: holder.session,
            ttl: holder.ttl,
            priority: holder.priority,
            acquired: holder.acquired,
            metadata: holder.metadata.clone(),
        });
        ElectionView {
            revision: self.revision,
            epoch: self.epoch,
            holder,
            ended: self.ended,
            reserved_for: self.reservation.as_ref().map(|reserved| reserved.id.clone()),
            reservation: self.reservation.as_ref().map(|reserved| reserved.span),
            cooldown: None,
        }
    }

    pub(super) fn waiting(&self) -> Vec<WaitingView> {
        let view = |waiting: &Waiting| {
            let Waiting { who, session, priority, asked: _ } = waiting.clone();
            WaitingView { who, session, priority }
        };
        self.queue.iter().map(view).collect()
    }

    pub(super) fn queue_length(&self) -> usize {
        self.queue.len()
    }

    /// The sessions of its holder and of those who wait.
    pub(super) fn sessions(&self) -> impl Iterator<Item = SessionId> {
        let waiting = self.queue.iter().map(|waiting| waiting.session);
        self.holder.iter().map(|holder| holder.session).chain(waiting)
    }

    /// The session in which a candidate waits.
    pub(super) fn session_of(&self, incarnation: Incarnation) -> Option<SessionId> {
        let waiting = self.queue.iter().find(|waiting| waiting.who.incarnation == incarnation);
        waiting.map(|waiting| waiting.session)
    }

    pub(super) fn reserved(&self, on: &ElectionName) -> Option<Reserved> {
        let Reservation { id: _, span, since } = self.reservation.clone()?;
        Some(Reserved { on: on.clone(), since, span })
    }

    pub(super) fn cooling_down(&self, on: &ElectionName) -> impl Iterator<Item = CoolingDown> {
        let of = |(id, cooldown): (&CandidateId, &Cooldown)| CoolingDown {
            on: on.clone(),
            id: id.clone(),
            since: cooldown.since,
            span: cooldown.span,
        };
        self.cooldowns.iter().map(of)
    }

    /// Whether exactly this is the current leadership.
    pub(super) fn is_led_by(&self, epoch: Epoch, incarnation: Incarnation) -> bool {
        self.epoch == epoch
            && self.holder.as_ref().is_some_and(|holder| holder.who.incarnation == incarnation)
    }

    /// The leadership is over, and nobody leads.
    pub(super) fn end(&mut self, at: At, how: Ended) {
        self.holder = None;
        self.request = None;
        self.ended = Some(how);
        self.revision = at.index;
    }

    /// A leadership begins.
    pub(super) fn begin(&mut self, at: At, epoch: Epoch, leader: Leader) {
        assert!(epoch > self.epoch, "an epoch is above every earlier one of its election");
        self.epoch = epoch;
        self.holder = Some(leader);
        self.request = None;
        self.ended = None;
        self.revision = at.index;
    }

    /// Whether the last leadership was ended by hand, so that its work may still be dying.
    pub(super) fn was_forced(&self) -> bool {
        self.ended == Some(Ended::Forced)
    }

    /// Adds a candidate to the queue, or moves it within. One that waits already keeps its turn.
    pub(super) fn wait(&mut self, new: Waiting) {
        let earlier = self.queue.iter().position(|waiting| waiting.who == new.who);
        let asked = earlier.map(|at| self.queue.remove(at).asked).unwrap_or(new.asked);
        let new = Waiting { asked, ..new };
        let before = |waiting: &Waiting| (-i64::from(waiting.priority), waiting.asked);
        let place = self.queue.partition_point(|waiting| before(waiting) <= before(&new));
        self.queue.insert(place, new);
    }

    pub(super) fn is_waiting(&self, who: &Candidate) -> bool {
        self.queue.iter().any(|waiting| waiting.who == *who)
    }

    /// Removes from the queue. How many were removed.
    pub(super) fn leave_queue(&mut self, leaves: impl Fn(&Waiting) -> bool) -> usize {
        let before = self.queue.len();
        self.queue.retain(|waiting| !leaves(waiting));
        before - self.queue.len()
    }
}

impl State {
    pub(super) fn ask(
        &mut self,
        at: At,
        on: ElectionName,
        epoch: Epoch,
        ask: AskLine,
        changes: &mut Changes,
    ) -> Answer {
        match self.elections.get_mut(&on) {
            Some(election) if election.holder.is_some() && election.epoch == epoch => {
                // A retry asks for nothing new.
                if election.request.as_ref() != Some(&ask) {
                    election.request = Some(ask.clone());
                    election.revision = at.index;
                    changes.push(Change::Requested { on, epoch, ask });
                }
                Answer::Done
            }
            _ => Answer::Denied(self.view(&on).into()),
        }
    }

    pub(super) fn force_release(
        &mut self,
        at: At,
        on: ElectionName,
        epoch: Epoch,
        changes: &mut Changes,
    ) -> Answer {
        match self.elections.get_mut(&on) {
            Some(election) if election.holder.is_some() && election.epoch == epoch => {
                election.end(at, Ended::Forced);
                changes.push(Change::Election(on));
                Answer::Done
            }
            _ => Answer::Denied(self.view(&on).into()),
        }
    }

    pub(super) fn end_reservation(
        &mut self,
        at: At,
        on: ElectionName,
        since: u64,
        changes: &mut Changes,
    ) -> Answer {
        if let Some(election) = self.elections.get_mut(&on)
            && election.reservation.as_ref().is_some_and(|reserved| reserved.since == since)
        {
            election.reservation = None;
            election.revision = at.index;
            changes.push(Change::ReservationEnded { on: on.clone(), since });
            changes.push(Change::Election(on));
        }
        Answer::Done
    }

    pub(super) fn end_cooldown(
        &mut self,
        on: ElectionName,
        id: CandidateId,
        since: u64,
        changes: &mut Changes,
    ) -> Answer {
        if let Some(election) = self.elections.get_mut(&on)
            && election.cooldowns.get(&id).is_some_and(|cooldown| cooldown.since == since)
        {
            election.cooldowns.remove(&id);
            changes.push(Change::CooldownEnded { on, id, since });
        }
        Answer::Done
    }

    /// Forgets an election, if nobody leads in it or waits for it.
    pub(super) fn discard(&mut self, on: ElectionName, changes: &mut Changes) -> Answer {
        let Some(election) = self.elections.get(&on) else { return Answer::Done };
        if election.holder.is_some() || election.queue_length() > 0 {
            return Answer::Denied(election.view().into());
        }
        let reservation = election.reservation.as_ref();
        changes
            .extend(reservation.map(|kept| Change::ReservationEnded { on: on.clone(), since: kept.since }));
        changes.extend(election.cooldowns.iter().map(|(id, cooldown)| Change::CooldownEnded {
            on: on.clone(),
            id: id.clone(),
            since: cooldown.since,
        }));
        self.pasts -= election.history.len();
        self.elections.remove(&on);
        changes.push(Change::Election(on));
        Answer::Done
    }
}
