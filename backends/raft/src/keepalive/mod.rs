//! Which sessions are alive, as the Raft leader counts it: in memory, by its own clock.
//!
//! The rule. A session has a ttl. A client acts on a leadership until `s + ttl - margin`, on its own clock, where `s` is the instant at which
//! it sent the last keepalive that was *acknowledged*. Nobody else may be granted the election before that. A session ends by a
//! logged command, so the question is only when its expiry may be proposed.
//!
//! ```text
//!             arrived           begin_round ──── a majority answers ──── confirmed
//!  client ──▶ last = now ─────────▶ round of everything that arrived ───────────▶ acknowledged, unless an expiry is proposed
//!
//!  last + ttl: expiry proposed ──▶ applied: the session is gone
//!              │ not acknowledged    └▶ certainly dropped: counts on
//! ```
//!
//! Why that is safe. Let a keepalive of session S be sent at `s`, arrive at a node at `a`, and be acknowledged. We show that no expiry of
//! S that was proposed before `a + ttl` is ever applied after the acknowledgement. With `s <= a` that is the rule; the margin covers clocks
//! that run at different rates.
//!
//! 1. *It was acknowledged in the term in which it arrived*, after a round trip to a majority that began after `a`. So no later term had
//!    begun, for a majority, when the round began. Everything that a node proposed in an earlier term is either before the leader's first entry
//!    of this term, which was applied before the table was made, or will never be committed.
//! 2. *By the same node in the same term*: an expiry is proposed only at `last + ttl`, and `last >= a` from `a` on. If one had been
//!    proposed before `a` and were still open, the keepalive would not have been counted; if one is proposed between `a` and the acknowledgement,
//!    then `ttl` has passed since `a`, and the keepalive is not acknowledged.
//! 3. *By a leader of a later term*: it counts every session's whole ttl from after its first own entry was applied. That entry was
//!    committed after the round of 1, which began after `a`, since a majority that still answered in the old term was asked. So it expires
//!    nothing before `a + ttl`.
//! 4. *A decision that is proposed late*, when its node has lost the lead and has it again: [`ExpireSession`](Command::ExpireSession)
//!    names the term of the decision, and the state machine refuses it in every other one.
//!
//! A campaign counts as a keepalive, since its grant lasts from when it was sent: whoever proposes one calls [`Keepalives::arrived`]
//! first, and does not propose it if that fails. It is acknowledged by its own commit, which is a round trip too. If a later
//! leader commits it, then that leader has had it in its log before it counted its first ttl.
//!
//! The same table times reservations and cooldowns. A new leader counts their whole span again. Only politeness hangs on them.
//!
//! In the style of the other pure parts: calls say what happened and when, `poll_*` says what is to be done. Leaves to others: sending,
//! proposing, and the term's first entry. Bounded by the bounds of the state, and by [`UNANSWERED_MAX`] keepalives without an answer.

mod timers;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bellwether_core::{Boot, CandidateId, ElectionName};

use self::timers::{Timed, Timers};
use crate::command::{Command, SessionId};
use crate::state::{Change, State};

/// Keepalives that wait for a round at a time: two of every session.
pub const UNANSWERED_MAX: usize = 2 * crate::limits::SESSIONS_MAX;

/// How many commands [`Keepalives::poll_due`] returns at a time: a batch that is worth one write to disk.
pub const DUE_MAX: usize = 256;

/// The Raft leader's table of sessions. One for each node; empty while another node leads.
#[derive(Clone, Debug, Default)]
pub struct Keepalives {
    lead: Option<Lead>,
    /// Over all terms, so that no ticket or round of an earlier term is taken for one of this.
    numbered: u64,
}

/// What a leader knows in one term.
#[derive(Clone, Debug)]
struct Lead {
    term: u64,
    sessions: BTreeMap<SessionId, Life>,
    timers: Timers,
    /// Arrived, and in no round yet.
    waiting: VecDeque<Ticket>,
    /// Under way.
    rounds: BTreeMap<u64, Vec<Ticket>>,
}

#[derive(Clone, Copy, Debug)]
struct Life {
    ttl: Duration,
    /// When the last keepalive arrived, or when counting began.
    last: Boot,
    /// An expiry was proposed, and is neither applied nor certainly dropped.
    expiring: bool,
}

/// A keepalive that has arrived, to be answered when [`Keepalives::confirmed`] returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The session.
    pub session: SessionId,
    number: u64,
}

/// A round trip to a majority, for everything that had arrived when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Round {
    number: u64,
    /// The term that a majority has to confirm.
    pub term: u64,
}

/// Why a keepalive was not counted. It must not be acknowledged, and a campaign that came with it must not be proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCounted {
    /// This node does not lead, or has not applied its first entry.
    NotLeader,
    /// There is no such session. It has ended, or is so new that this node has not applied it: ask again only after a command of
    /// this session was answered.
    NoSuchSession,
    /// The session's expiry is proposed. It is decided soon.
    Expiring,
    /// Too many keepalives wait for an answer.
    TooMany,
}

impl Keepalives {
    /// A node that does not lead.
    pub fn new() -> Keepalives {
        Keepalives::default()
    }

    /// This node leads in `term`, and has applied its first entry of that term to `state`. Everything counts from `now`.
    pub fn became_leader(&mut self, now: Boot, term: u64, state: &State) {
        let life = |(id, ttl, _): (SessionId, Duration, &str)| (id, Life { ttl, last: now, expiring: false });
        let sessions: BTreeMap<_, _> = state.sessions().map(life).collect();
        let mut timers = Timers::default();
        for (id, life) in &sessions {
            timers.set(Timed::Session(*id), now + life.ttl);
        }
        for reserved in state.reservations() {
            timers.set(Timed::Reservation(reserved.on, reserved.since), now + reserved.span);
        }
        for cooling in state.cooldowns() {
            timers.set(Timed::Cooldown(cooling.on, cooling.id, cooling.since), now + cooling.span);
        }
        let (waiting, rounds) = Default::default();
        self.lead = Some(Lead { term, sessions, timers, waiting, rounds });
    }

    /// This node does not lead any more, or not in that term. Nobody who waits for an answer gets one.
    pub fn lost_leadership(&mut self) {
        self.lead = None;
    }

    /// The term in which this node counts.
    pub fn term(&self) -> Option<u64> {
        self.lead.as_ref().map(|lead| lead.term)
    }

    /// A keepalive of this session has arrived, or a campaign that counts as one.
    ///
    /// # Errors
    /// When it does not count.
    pub fn arrived(&mut self, now: Boot, session: SessionId) -> Result<Ticket, NotCounted> {
        let lead = self.lead.as_mut().ok_or(NotCounted::NotLeader)?;
        if lead.waiting.len() + lead.rounds.values().map(Vec::len).sum::<usize>() >= UNANSWERED_MAX {
            return Err(NotCounted::TooMany);
        }
        let life = lead.sessions.get_mut(&session).ok_or(NotCounted::NoSuchSession)?;
        if life.expiring {
            return Err(NotCounted::Expiring);
        }
        life.last = now.max(life.last);
        self.numbered += 1;
        let ticket = Ticket { session, number: self.numbered };
        lead.waiting.push_back(ticket);
        Ok(ticket)
    }

    /// Somebody else answers this one, as the commit of a campaign does, or nobody waits for it.
    pub fn forget(&mut self, ticket: Ticket) {
        let Some(lead) = &mut self.lead else { return };
        lead.waiting.retain(|other| *other != ticket);
        lead.rounds.values_mut().for_each(|round| round.retain(|other| *other != ticket));
    }

    /// Begins a round for everything that waits; `None` where nothing does. The round trip to a majority has to begin after this.
    pub fn begin_round(&mut self) -> Option<Round> {
        let lead = self.lead.as_mut().filter(|lead| !lead.waiting.is_empty())?;
        self.numbered += 1;
        lead.rounds.insert(self.numbered, lead.waiting.drain(..).collect());
        Some(Round { number: self.numbered, term: lead.term })
    }

    /// A majority has confirmed that this node leads in `term`. Returns the keepalives that are to be acknowledged.
    pub fn confirmed(&mut self, round: Round, term: u64) -> Vec<Ticket> {
        let Some(lead) = &mut self.lead else { return Vec::new() };
        let tickets = lead.rounds.remove(&round.number).unwrap_or_default();
        if term != round.term || lead.term != round.term {
            return Vec::new();
        }
        let is_alive =
            |ticket: &Ticket| lead.sessions.get(&ticket.session).is_some_and(|life| !life.expiring);
        tickets.into_iter().filter(is_alive).collect()
    }

    /// The round trip failed. Whoever waits for it gets no answer.
    pub fn failed(&mut self, round: Round) {
        if let Some(lead) = &mut self.lead {
            lead.rounds.remove(&round.number);
        }
    }

    /// When [`poll_due`](Keepalives::poll_due) may have something to do.
    pub fn poll_timeout(&self) -> Option<Boot> {
        self.lead.as_ref()?.timers.next()
    }

    /// What is to be proposed now, in the term of this table. Each is returned once, until [`dropped`](Keepalives::dropped) says otherwise. From
    /// here on a session that is to expire is not acknowledged.
    pub fn poll_due(&mut self, now: Boot) -> Vec<Command> {
        let Some(lead) = &mut self.lead else { return Vec::new() };
        let mut due = Vec::new();
        while due.len() < DUE_MAX
            && let Some(timed) = lead.timers.pop(now)
        {
            match timed {
                Timed::Session(session) => {
                    let Some(life) = lead.sessions.get_mut(&session) else { continue };
                    let end = life.last + life.ttl;
                    if now < end {
                        // A keepalive moves the end; the timer follows when it rings.
                        lead.timers.set(Timed::Session(session), end);
                        continue;
                    }
                    life.expiring = true;
                    due.push(Command::ExpireSession { session, term: lead.term });
                }
                Timed::Reservation(on, since) => due.push(Command::EndReservation { on, since }),
                Timed::Cooldown(on, id, since) => due.push(Command::EndCooldown { on, id, since }),
            }
        }
        due
    }

    /// A command of [`poll_due`](Keepalives::poll_due) was certainly not appended to the log, and never will be. A command whose fate is
    /// not known is not dropped: it is applied in this term, or the term ends.
    pub fn dropped(&mut self, now: Boot, command: &Command) {
        let Some(lead) = &mut self.lead else { return };
        match command {
            Command::ExpireSession { session, term } if *term == lead.term => {
                if let Some(life) = lead.sessions.get_mut(session) {
                    life.expiring = false;
                    lead.timers.set(Timed::Session(*session), now.max(life.last + life.ttl));
                }
            }
            Command::EndReservation { on, since } => {
                lead.timers.set(Timed::Reservation(on.clone(), *since), now);
            }
            Command::EndCooldown { on, id, since } => {
                lead.timers.set(Timed::Cooldown(on.clone(), id.clone(), *since), now);
            }
            _ => {}
        }
    }

    /// These changes were applied to the state of this node.
    pub fn applied(&mut self, now: Boot, changes: &[Change]) {
        let Some(lead) = &mut self.lead else { return };
        for change in changes {
            match change {
                Change::SessionOpened { session, ttl } => {
                    lead.sessions.insert(*session, Life { ttl: *ttl, last: now, expiring: false });
                    lead.timers.set(Timed::Session(*session), now + *ttl);
                }
                Change::SessionEnded(session) => {
                    lead.sessions.remove(session);
                    lead.timers.cancel(&Timed::Session(*session));
                }
                Change::Reserved(reserved) => {
                    let timed = Timed::Reservation(reserved.on.clone(), reserved.since);
                    lead.timers.set(timed, now + reserved.span);
                }
                Change::ReservationEnded { on, since } => {
                    lead.timers.cancel(&Timed::Reservation(on.clone(), *since));
                }
                Change::CoolingDown(cooling) => {
                    let timed = Timed::Cooldown(cooling.on.clone(), cooling.id.clone(), cooling.since);
                    lead.timers.set(timed, now + cooling.span);
                }
                Change::CooldownEnded { on, id, since } => {
                    lead.timers.cancel(&Timed::Cooldown(on.clone(), id.clone(), *since));
                }
                Change::Election(_) | Change::Requested { .. } => {}
            }
        }
    }

    /// How much is left of a cooldown, for a view that is passed on; `None` where this node does not count it.
    pub fn cooldown_left(&self, now: Boot, on: &ElectionName, id: &CandidateId) -> Option<Duration> {
        let until = self.lead.as_ref()?.timers.cooldown_end(on, id)?;
        Some(until.since(now))
    }

    /// How much is left of a reservation, for a view that is passed on; `None` where this node does not count it.
    pub fn reservation_left(&self, now: Boot, on: &ElectionName) -> Option<Duration> {
        let until = self.lead.as_ref()?.timers.reservation_end(on)?;
        Some(until.since(now))
    }
}

#[cfg(test)]
mod tests;
