//! The healing phase: faults stop, everybody is back, and now somebody has to lead each election, and go on leading; then the process
//! of a leader is killed, and somebody else has to lead what it led. Nothing else may change for that.

use bellwether_core::{Input, Reason};

use crate::election::Awaited;
use crate::invariants::{BrokenInvariant, recovery, requests};
use crate::key::{ElectionKey, Seat};
use crate::options::Watch;
use crate::queue::WorldEvent;
use crate::time::{MILLI, Nanos};
use crate::world::{World, say};

/// How far the healing has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heal {
    /// Somebody has to lead each election, within its bound.
    Recovering,
    /// Somebody leads. Cooldowns run out, and the highest priority gets its way.
    Settling,
    /// Nothing may change any more, but by priority.
    Steady,
    /// A leader was killed, and what it led has to be led again.
    Bereft,
}

/// Beyond the bounds of the settings: waking up is not instant, and a claim that meets another is tried again.
const SLACK: Nanos = 60 * MILLI;

/// How often the healing phase may find a handover under way: candidates have four priorities between them.
const HANDOVERS_MAX: u32 = 4;

impl World {
    pub(crate) fn begin_healing(&mut self) {
        say!(self, "faults stop");
        if self.options.ends_with_death {
            for key in self.keys() {
                if let Some(leader) = self.leader(key) {
                    self.crash(leader.node, true);
                }
            }
        }
        self.heal = Some(Heal::Recovering);
        for key in self.keys() {
            let bound = self.options.bound(|line| line.recovery) + SLACK + self.pause_left(key);
            self.election(key).awaited = Some(Awaited { since: self.now, bound });
            self.queue.push(self.now + self.round_trips() + SLACK, WorldEvent::Arrived(key));
        }
        self.look_at_next_bound();
        self.spike = None;
        self.outage = false;
        self.hasten();
        self.server_up();
        self.read_backlog();
        for node in self.alive() {
            self.mend(node);
        }
        for slot in 0..self.options.plans.len() {
            if self.alive_of(slot) == 0 {
                self.restart(slot);
            }
        }
        for key in self.keys() {
            if let Some(leader) = self.leader(key) {
                self.healing_led(leader, key);
            } else if self.options.ends_with_death {
                self.queue.push(self.now + 1, WorldEvent::Outsider(key));
            }
        }
    }

    fn look_again(&mut self, at: Nanos) {
        self.progress_at = at;
        self.queue.push(at, WorldEvent::Progress);
    }

    /// When the first of those that are awaited has to be there.
    fn look_at_next_bound(&mut self) {
        let awaited = self.elections.iter().filter_map(|election| election.awaited);
        if let Some(at) = awaited.map(|awaited| awaited.since + awaited.bound + 1).min() {
            self.look_again(at);
        }
    }

    /// From now on no call fails any more, and how long it takes depends on what each candidate knows.
    pub(crate) fn all_arrived(&mut self, key: ElectionKey) {
        let (Some(Heal::Recovering), Some(awaited)) = (self.heal, self.election(key).awaited) else { return };
        if self.taking_part(key).iter().any(|seat| self.candidate(*seat).work.is_some()) {
            // Work that is still stopping keeps everybody out, and takes its time.
            self.queue.push(self.now + SLACK, WorldEvent::Arrived(key));
            return;
        }
        let left = self.pause_left(key);
        if let Some(expected) = self.expected(key).map(|expected| expected.max(left) + SLACK)
            && self.now + expected < awaited.since + awaited.bound
        {
            say!(self, "somebody has to lead {key:?} within {expected}ns");
            self.election(key).awaited = Some(Awaited { since: self.now, bound: expected });
            self.look_at_next_bound();
        }
    }

    /// What is on its way comes soon: a message that arrives an hour late is a fault that has not stopped.
    fn hasten(&mut self) {
        let (now, longest) = (self.now, self.options.latency.1);
        let soon = now + longest;
        self.queue.reschedule(|at, event| match event {
            WorldEvent::Deliver(_)
            | WorldEvent::Answer(..)
            | WorldEvent::GiveUp(..)
            | WorldEvent::News(..)
            | WorldEvent::Arrive(..)
            | WorldEvent::Down(..)
            | WorldEvent::ServerUp
            | WorldEvent::Resume(_)
            | WorldEvent::Reconnect(..)
            | WorldEvent::Restart(_)
            | WorldEvent::StartAgain(_)
            | WorldEvent::Recover(_) => at.min(soon),
            _ => at,
        });
    }

    fn mend(&mut self, node: usize) {
        let connection_number = self.nodes[node].connection_number;
        self.resume(node);
        if self.nodes[node].cut.is_some() || !self.nodes[node].connected {
            self.reconnect(node, connection_number);
        }
        for seat in self.seats(node) {
            self.candidate_mut(seat).sick = false;
            self.tell(seat, Input::Health(true));
        }
        self.step(node);
    }

    /// While nobody leads, the outsider goes on asking whoever the record names, dead or alive.
    pub(crate) fn outsider_asks_again(&mut self, key: ElectionKey) {
        if self.heal == Some(Heal::Recovering) && self.election(key).awaited.is_some() {
            self.outsider_asks(key);
            self.queue.push(self.now + self.options.shortest_ttl() / 3, WorldEvent::Outsider(key));
        }
    }

    /// Somebody begins to lead that election.
    pub(crate) fn healing_led(&mut self, by: Seat, key: ElectionKey) {
        let Some(Awaited { since, bound }) = self.election(key).awaited.take() else { return };
        let (took, all_led) =
            (self.now - since, self.elections.iter().all(|election| election.awaited.is_none()));
        let share = took * 1_000 / bound;
        if self.heal == Some(Heal::Bereft) {
            self.judge(recovery::check("the leader's death", took, bound));
            self.tally.failover_share_max = self.tally.failover_share_max.max(share);
            self.done = all_led;
        } else {
            self.judge(recovery::check("the end of all faults", took, bound));
            self.tally.recovery_max = self.tally.recovery_max.max(took);
            self.tally.recovery_share_max = self.tally.recovery_share_max.max(share);
            say!(self, "healed: {by} leads {key:?} {took}ns after the faults, of {bound}ns");
        }
        match all_led {
            true if self.heal == Some(Heal::Recovering) => {
                self.heal = Some(Heal::Settling);
                self.look_again(self.now + self.options.bound(|line| line.recovery) + self.longest_pause());
            }
            true => {}
            false => self.look_at_next_bound(),
        }
    }

    /// Somebody lost the lead.
    pub(crate) fn healing_lost(&mut self, seat: Seat, key: ElectionKey, reason: Reason) {
        let is_calm = match self.heal {
            Some(Heal::Steady) => true,
            // The death of one leader is no business of the others.
            Some(Heal::Bereft) => self.election(key).awaited.is_none(),
            Some(Heal::Recovering | Heal::Settling) | None => false,
        };
        if is_calm && reason != Reason::Preempted {
            let said = format!("{seat} lost the lead for {reason:?} with no fault about");
            self.judge(Err(BrokenInvariant::new("recovery", said)));
        }
    }

    pub(crate) fn healing_progress(&mut self) {
        if self.now < self.progress_at {
            return;
        }
        match self.heal {
            Some(Heal::Recovering) => self.judge_awaited("the end of all faults"),
            Some(Heal::Bereft) => self.judge_awaited("the leader's death"),
            Some(Heal::Settling | Heal::Steady) => {
                let without: Vec<ElectionKey> =
                    self.keys().filter(|key| self.leader(*key).is_none()).collect();
                if !without.is_empty() {
                    self.await_handovers(&without);
                } else if self.heal == Some(Heal::Settling) {
                    self.heal = Some(Heal::Steady);
                    self.look_again(self.now + self.options.longest_ttl());
                } else {
                    self.kill_a_leader();
                }
            }
            None => {}
        }
    }

    fn judge_awaited(&mut self, after: &str) {
        for election in 0..self.elections.len() {
            if let Some(Awaited { since, bound }) = self.elections[election].awaited {
                self.judge(recovery::check(after, self.now - since, bound));
            }
        }
    }

    /// The process of one leader dies, with everything that it leads.
    fn kill_a_leader(&mut self) {
        let leaders: Vec<(ElectionKey, Seat)> =
            self.keys().filter_map(|key| Some((key, self.leader(key)?))).collect();
        for (key, leader) in &leaders {
            self.judge_priority(*key, *leader);
        }
        let Some(killed) = leaders.first().map(|(_, leader)| leader.node) else { return };
        self.heal = Some(Heal::Bereft);
        for (key, _) in leaders.into_iter().filter(|(_, leader)| leader.node == killed) {
            let bound = self.failover(key);
            self.election(key).awaited = Some(Awaited { since: self.now, bound });
        }
        self.crash(killed, false);
        self.look_at_next_bound();
    }

    /// After all this time the highest priority has got its way, where a leader can be asked.
    fn judge_priority(&mut self, key: ElectionKey, leader: Seat) {
        if self.sessions.is_some() {
            return;
        }
        let options = |seat: Seat| self.candidate(seat).core.settings().options().clone();
        let led = options(leader);
        let others = self.taking_part(key).into_iter().filter(|seat| *seat != leader).map(options);
        let asker = others.filter(|options| options.preempt).map(|options| options.priority).max();
        self.judge(requests::check_priority(led.priority, asker));
    }

    /// Nobody leads these just now: the only reason can be a handover by priority, and that is over within a failover.
    /// There are only so many priorities, so it does not go on for ever.
    fn await_handovers(&mut self, without: &[ElectionKey]) {
        self.heal = Some(Heal::Recovering);
        for key in without {
            let bound = self.failover(*key);
            let (now, election) = (self.now, self.election(*key));
            election.awaited = Some(Awaited { since: now, bound });
            election.handovers += 1;
            if election.handovers > HANDOVERS_MAX {
                self.judge(Err(BrokenInvariant::new(
                    "recovery",
                    "nobody stays in the lead with no fault about",
                )));
            }
        }
        self.look_at_next_bound();
    }

    fn failover(&self, key: ElectionKey) -> Nanos {
        let announced = self.options.watch != Watch::Off;
        let bound = self.options.bound(|line| if announced { line.failover } else { line.unannounced });
        bound + SLACK + self.pause_left(key)
    }

    fn longest_pause(&self) -> Nanos {
        self.keys().map(|key| self.pause_left(key)).max().unwrap_or_default()
    }

    /// How much longer somebody may wait because that election is paused.
    fn pause_left(&self, key: ElectionKey) -> Nanos {
        let record = self.store.record(key).as_deref().map(|found| &found.0);
        self.elections[key.0].pauses.waited_for(self.now, record)
    }
}
