//! What a client does in its session: campaign, retire, resign, proclaim.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_cluster::At;
use bellwether_core::{ElectionName, Epoch, Incarnation, METADATA_MAX};

use super::election::{Cooldown, Election, Leader, Reservation, Waiting};
use super::{Change, Changes, CoolingDown, Reserved, State};
use crate::answer::{Answer, ElectionView, Ended, Refusal};
use crate::command::{Act, Campaign, ReserveFor, Sequence, SessionId};
use crate::limits::{COOLDOWN_MAX, COOLDOWNS_MAX, QUEUE_MAX, RESERVATION_MAX, WAITING_MAX};

/// Where the recovery generation stands in an epoch: above every log index.
const GENERATION_SHIFT: u32 = 45;

/// Whose turn it is.
enum Turn {
    /// The bidder may lead.
    Free,
    /// Somebody else leads, or the election is kept for somebody else.
    Taken,
    /// A later campaign of the same candidate was granted: this one is late, and nobody waits for it.
    Overtaken,
}

impl State {
    pub(super) fn act(
        &mut self,
        at: At,
        session: SessionId,
        sequence: Sequence,
        act: Act,
        changes: &mut Changes,
    ) -> Result<Answer, Refusal> {
        match act {
            Act::Campaign(bid) => self.campaign(at, session, sequence, bid, changes),
            Act::Retire { on, incarnation, cancels } => {
                self.cancel(session, &cancels);
                Ok(self.retire(at, on, incarnation, changes))
            }
            Act::Resign { on, epoch, incarnation, reserve_for, cooldown } => {
                let leadership = (epoch, incarnation);
                self.resign(at, on, leadership, reserve_for, cooldown, changes)
            }
            Act::Proclaim { on, epoch, incarnation, metadata } => {
                self.proclaim(at, on, (epoch, incarnation), metadata, changes)
            }
        }
    }

    fn campaign(
        &mut self,
        at: At,
        session: SessionId,
        sequence: Sequence,
        bid: Campaign,
        changes: &mut Changes,
    ) -> Result<Answer, Refusal> {
        check_metadata(&bid.metadata)?;
        let ttl = self.session_ttl(session).ok_or(Refusal::NoSuchSession)?;
        if let Some(denied) = self.cooling_down(&bid) {
            return Ok(Answer::Denied(denied.into()));
        }
        let turn =
            self.elections.get(&bid.on).map_or(Turn::Free, |found| turn(found, session, sequence, &bid));
        match turn {
            Turn::Overtaken => Err(Refusal::Forgotten),
            Turn::Taken => {
                self.wait(at, session, &bid)?;
                Ok(Answer::Denied(self.view(&bid.on).into()))
            }
            Turn::Free => {
                let stored = self.elections.get(&bid.on).map_or(Epoch::ZERO, |election| election.epoch);
                let epoch = next_epoch(at, stored, bid.floor).ok_or(Refusal::EpochsSpent)?;
                self.grant(at, epoch, session, sequence, ttl, bid, changes)
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all of them are part of one grant")]
    fn grant(
        &mut self,
        at: At,
        epoch: Epoch,
        session: SessionId,
        sequence: Sequence,
        ttl: Duration,
        bid: Campaign,
        changes: &mut Changes,
    ) -> Result<Answer, Refusal> {
        let Campaign { on, who, priority, metadata, wall: acquired, .. } = bid;
        let election = self.election(&on)?;
        let after_crash = election.was_forced();
        let before = election.holder.as_ref().map(|holder| holder.session);
        let left = election.leave_queue(|waiting| waiting.who == who);
        if let Some(reserved) = election.reservation.take() {
            changes.push(Change::ReservationEnded { on: on.clone(), since: reserved.since });
        }
        election.begin(at, epoch, Leader { who, session, sequence, ttl, priority, acquired, metadata });
        self.waiting -= left;
        self.track(&on, session);
        if let Some(before) = before {
            self.track(&on, before);
        }
        changes.push(Change::Election(on));
        Ok(Answer::Granted { epoch, after_crash })
    }

    fn wait(&mut self, at: At, session: SessionId, bid: &Campaign) -> Result<(), Refusal> {
        let total = self.waiting;
        let election = self.election(&bid.on)?;
        let is_new = !election.is_waiting(&bid.who);
        if is_new && (election.queue_length() >= QUEUE_MAX || total >= WAITING_MAX) {
            return Err(Refusal::Limit(format!(
                "at most {QUEUE_MAX} candidates wait in one election, and {WAITING_MAX} in all: use fewer"
            )));
        }
        // A candidate that came back in another session waits there.
        let before = election.session_of(bid.who.incarnation);
        election.wait(Waiting { who: bid.who.clone(), session, priority: bid.priority, asked: at.index });
        self.waiting += usize::from(is_new);
        self.track(&bid.on, session);
        before.into_iter().for_each(|other| self.track(&bid.on, other));
        Ok(())
    }

    /// Denies a start of a candidate that does not know yet that its id has to stay away. It is told once, and counts by its own clock then.
    fn cooling_down(&mut self, bid: &Campaign) -> Option<ElectionView> {
        let longest = bid.cooldown?;
        let election = self.elections.get_mut(&bid.on)?;
        let cooldown = election.cooldowns.get_mut(&bid.who.id)?;
        if cooldown.told == bid.who.incarnation {
            return None;
        }
        cooldown.told = bid.who.incarnation;
        let left = cooldown.span.min(longest);
        Some(ElectionView { cooldown: Some(left), ..election.view() })
    }

    fn retire(
        &mut self,
        at: At,
        on: ElectionName,
        incarnation: Incarnation,
        changes: &mut Changes,
    ) -> Answer {
        let Some(election) = self.elections.get_mut(&on) else { return Answer::Done };
        let before = election.session_of(incarnation);
        let led_in = election.holder.as_ref().map(|holder| holder.session);
        let left = election.leave_queue(|waiting| waiting.who.incarnation == incarnation);
        self.waiting -= left;
        if election.holder.as_ref().is_some_and(|holder| holder.who.incarnation == incarnation) {
            election.end(at, Ended::Released);
            changes.push(Change::Election(on.clone()));
        }
        before.into_iter().chain(led_in).for_each(|session| self.track(&on, session));
        Answer::Done
    }

    fn resign(
        &mut self,
        at: At,
        on: ElectionName,
        (epoch, incarnation): (Epoch, Incarnation),
        reserve_for: Option<ReserveFor>,
        cooldown: Option<Duration>,
        changes: &mut Changes,
    ) -> Result<Answer, Refusal> {
        let too_long = reserve_for.as_ref().is_some_and(|reserve| reserve.span > RESERVATION_MAX);
        if too_long || cooldown.is_some_and(|span| span > COOLDOWN_MAX) {
            return Err(Refusal::Malformed(format!(
                "a reservation lasts for at most {RESERVATION_MAX:?}, and a cooldown for {COOLDOWN_MAX:?}"
            )));
        }
        let held = self.elections.get_mut(&on).filter(|election| election.is_led_by(epoch, incarnation));
        let Some((election, holder)) =
            held.and_then(|election| election.holder.take().map(|holder| (election, holder)))
        else {
            return Ok(Answer::Denied(self.view(&on).into()));
        };
        let since = at.index;
        election.end(at, Ended::Released);
        if let Some(ReserveFor { id, span }) = reserve_for {
            election.reservation = Some(Reservation { id, span, since });
            changes.push(Change::Reserved(Reserved { on: on.clone(), since, span }));
        }
        let id = holder.who.id;
        let has_room = election.cooldowns.len() < COOLDOWNS_MAX || election.cooldowns.contains_key(&id);
        // Only politeness is lost where there is no room: the release counts.
        if let Some(span) = cooldown.filter(|_| has_room) {
            if let Some(old) =
                election.cooldowns.insert(id.clone(), Cooldown { told: incarnation, span, since })
            {
                changes.push(Change::CooldownEnded { on: on.clone(), id: id.clone(), since: old.since });
            }
            changes.push(Change::CoolingDown(CoolingDown { on: on.clone(), id, since, span }));
        }
        self.track(&on, holder.session);
        changes.push(Change::Election(on));
        Ok(Answer::Done)
    }

    fn proclaim(
        &mut self,
        at: At,
        on: ElectionName,
        (epoch, incarnation): (Epoch, Incarnation),
        metadata: BTreeMap<String, String>,
        changes: &mut Changes,
    ) -> Result<Answer, Refusal> {
        check_metadata(&metadata)?;
        let held = self.elections.get_mut(&on).filter(|election| election.is_led_by(epoch, incarnation));
        let Some((revision, holder)) =
            held.and_then(|election| Some((&mut election.revision, election.holder.as_mut()?)))
        else {
            return Ok(Answer::Denied(self.view(&on).into()));
        };
        holder.metadata = metadata;
        *revision = at.index;
        changes.push(Change::Election(on));
        Ok(Answer::Done)
    }

    /// Writes down whether a session leads in an election or waits for it.
    fn track(&mut self, on: &ElectionName, id: SessionId) {
        let takes_part =
            self.elections.get(on).is_some_and(|election| election.sessions().any(|other| other == id));
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if takes_part {
            session.elections.insert(on.clone());
        } else {
            session.elections.remove(on);
        }
    }
}

fn turn(election: &Election, session: SessionId, sequence: Sequence, bid: &Campaign) -> Turn {
    let Some(holder) = &election.holder else {
        let kept = election.reservation.as_ref();
        let is_kept = kept.is_some_and(|reserved| reserved.id != bid.who.id);
        return if is_kept { Turn::Taken } else { Turn::Free };
    };
    if holder.who == bid.who {
        // The candidate asks although it leads: the answer of its last campaign was lost, perhaps with the session.
        let is_later = (session, sequence) > (holder.session, holder.sequence);
        return if is_later { Turn::Free } else { Turn::Overtaken };
    }
    if bid.danger_reclaim && holder.who.id == bid.who.id { Turn::Free } else { Turn::Taken }
}

/// Above every epoch that was issued before, here or in what a recovery has lost, and above the bidder's floor. `None` when there is none.
fn next_epoch(at: At, stored: Epoch, floor: Epoch) -> Option<Epoch> {
    let generation = u64::from(at.generation);
    if at.index >> GENERATION_SHIFT != 0 || generation >= 1 << (u64::BITS - GENERATION_SHIFT) {
        return None;
    }
    let by_index = Epoch::new(generation << GENERATION_SHIFT | at.index)?;
    Some(by_index.max(stored.next()?).max(floor.next()?))
}

fn check_metadata(metadata: &BTreeMap<String, String>) -> Result<(), Refusal> {
    let (most, most_bytes) = METADATA_MAX;
    let bytes: usize = metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
    if metadata.len() > most || bytes > most_bytes {
        let why = format!("metadata has at most {most} entries of {most_bytes} bytes in all");
        return Err(Refusal::Malformed(why));
    }
    Ok(())
}
