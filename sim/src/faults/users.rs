//! What people and programs do to an election: none of it is a fault, all of it comes at the worst moment.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{Ask, CandidateId, Input, Pause, Request, Wall};

use super::WorldFault;
use crate::call::Purpose;
use crate::key::{ElectionKey, Seat};
use crate::queue::WorldEvent;
use crate::world::{OUTSIDER, World, say};

impl World {
    /// One whim, and the next one's instant.
    pub(crate) fn next_whim(&mut self) {
        if self.heal.is_some() {
            return;
        }
        // Each election has users of its own.
        let mean = self.options.whim_every / self.options.elections as u64;
        let next = self.now + 1 + self.rng.below(2 * mean);
        self.queue.push(next, WorldEvent::Whim);
        let whims = std::mem::take(&mut self.options.whims);
        let whim = self.draw(&whims);
        self.options.whims = whims;
        let key = self.some_election();
        match whim {
            Some(WorldFault::Asked) => self.outsider_asks(key),
            Some(WorldFault::ElectionPaused) => self.outsider_pauses(key),
            Some(WorldFault::StepDown) => self.leader_hears(key, WorldFault::StepDown),
            Some(WorldFault::Validate) => self.leader_hears(key, WorldFault::Validate),
            Some(WorldFault::StopStart) => self.somebody_stops(key),
            Some(WorldFault::Sick) => self.somebody_falls_ill(key),
            _ => {}
        }
    }

    fn leader_hears(&mut self, key: ElectionKey, whim: WorldFault) {
        let Some(leader) = self.leader(key).filter(|leader| self.nodes[leader.node].runs()) else { return };
        self.tally.count(whim);
        let input = match whim {
            WorldFault::Validate => Input::Validate,
            _ => Input::StepDown { to: self.somebody(key) },
        };
        self.tell(leader, input);
        self.step(leader.node);
    }

    /// A candidate to hand over to: anybody, the leader itself included, or nobody.
    fn somebody(&mut self, key: ElectionKey) -> Option<CandidateId> {
        if self.rng.one_in(2) {
            return None;
        }
        self.anybody(key).map(|seat| self.candidate(seat).who.id.clone())
    }

    fn anybody(&mut self, key: ElectionKey) -> Option<Seat> {
        let all = self.taking_part(key);
        let choice = self.rng.below(all.len() as u64) as usize;
        all.get(choice).copied()
    }

    fn somebody_stops(&mut self, key: ElectionKey) {
        let Some(seat) = self.anybody(key).filter(|seat| self.nodes[seat.node].runs()) else { return };
        self.tally.count(WorldFault::StopStart);
        self.tell(seat, Input::Stop);
        self.step(seat.node);
    }

    fn somebody_falls_ill(&mut self, key: ElectionKey) {
        let Some(seat) = self.anybody(key).filter(|seat| self.nodes[seat.node].runs()) else { return };
        let Some(threshold) = self.candidate(seat).core.settings().options().health_failures else { return };
        self.tally.count(WorldFault::Sick);
        self.candidate_mut(seat).sick = true;
        for _ in 0..threshold {
            self.tell(seat, Input::Health(false));
        }
        self.step(seat.node);
        let span = self.a_while();
        self.queue.push(self.now + span, WorldEvent::Recover(seat));
    }

    pub(crate) fn recover(&mut self, seat: Seat) {
        self.candidate_mut(seat).sick = false;
        if self.nodes[seat.node].frozen {
            self.queue.push(self.now + self.options.shortest_ttl() / 8, WorldEvent::Recover(seat));
            return;
        }
        self.tell(seat, Input::Health(true));
        self.step(seat.node);
    }

    /// Somebody looks who leads and asks them to step down, as the command does.
    pub(crate) fn outsider_asks(&mut self, key: ElectionKey) {
        self.tally.count(WorldFault::Asked);
        let to = self.somebody(key);
        let outsider = &mut self.nodes[OUTSIDER];
        let Some(process) = &outsider.process else { return };
        let (looks, asks) = (Arc::clone(&process.backend), Arc::clone(&process.backend));
        let on = key.name();
        say!(self, "the outsider asks in {key:?} to step down for {to:?}");
        let record = self.store.record(key).as_ref().and_then(|found| found.0.epoch);
        let outsider = &mut self.nodes[OUTSIDER];
        let look_on = on.clone();
        outsider.begin_outside(
            Purpose::Look,
            Box::pin(async move {
                let _ = looks.observe(&look_on).await;
                None
            }),
        );
        if let Some(epoch) = record {
            let what = match self.rng.one_in(4) {
                true => {
                    let after = Duration::from_nanos(self.rng.below(2 * self.options.longest_ttl()));
                    Ask::StepDownLater { to, after }
                }
                false => Ask::StepDown { to },
            };
            let request = Request { epoch, what };
            outsider.begin_outside(
                Purpose::Request(epoch),
                Box::pin(async move {
                    let _ = asks.request(&on, &request).await;
                    None
                }),
            );
        }
        self.step(OUTSIDER);
    }

    /// Somebody pauses the election, or ends the pause, as the command does.
    fn outsider_pauses(&mut self, key: ElectionKey) {
        self.tally.count(WorldFault::ElectionPaused);
        let span = Duration::from_nanos(1 + self.rng.below(2 * self.options.longest_ttl()));
        // Each is another pause: nothing else about this time counts.
        let at = Some(Wall::from_unix_nanos(i64::try_from(self.now / 1_000).unwrap_or_default() * 1_000));
        let pause = if self.rng.one_in(4) { None } else { Pause::new(span, None, at) };
        let outsider = &mut self.nodes[OUTSIDER];
        let Some(process) = &outsider.process else { return };
        let backend = Arc::clone(&process.backend);
        let on = key.name();
        say!(self, "the outsider pauses {key:?}: {pause:?}");
        let outsider = &mut self.nodes[OUTSIDER];
        outsider.begin_outside(
            Purpose::Pause,
            Box::pin(async move {
                let _ = backend.pause(&on, pause.as_ref()).await;
                None
            }),
        );
        self.step(OUTSIDER);
    }
}
