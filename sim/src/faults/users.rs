//! What people and programs do to an election: none of it is a fault, all of it comes at the worst moment.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{Ask, CandidateId, Input, Pause, Request, Wall};

use super::WorldFault;
use crate::call::Purpose;
use crate::queue::WorldEvent;
use crate::world::{OUTSIDER, World, say};

impl World {
    /// One whim, and the next one's instant.
    pub(crate) fn next_whim(&mut self) {
        if self.heal.is_some() {
            return;
        }
        let next = self.now + 1 + self.rng.below(2 * self.options.whim_every);
        self.queue.push(next, WorldEvent::Whim);
        let whims = std::mem::take(&mut self.options.whims);
        let whim = self.draw(&whims);
        self.options.whims = whims;
        match whim {
            Some(WorldFault::Asked) => self.outsider_asks(),
            Some(WorldFault::ElectionPaused) => self.outsider_pauses(),
            Some(WorldFault::StepDown) => self.leader_hears(WorldFault::StepDown),
            Some(WorldFault::Validate) => self.leader_hears(WorldFault::Validate),
            Some(WorldFault::StopStart) => self.somebody_stops(),
            Some(WorldFault::Sick) => self.somebody_falls_ill(),
            _ => {}
        }
    }

    fn leader_hears(&mut self, whim: WorldFault) {
        let Some(leader) = self.leader().filter(|node| self.nodes[*node].runs()) else { return };
        self.tally.count(whim);
        let input = match whim {
            WorldFault::Validate => Input::Validate,
            _ => Input::StepDown { to: self.somebody() },
        };
        self.tell(leader, input);
        self.step(leader);
    }

    /// A candidate to hand over to: anybody, the leader itself included, or nobody.
    fn somebody(&mut self) -> Option<CandidateId> {
        if self.rng.one_in(2) {
            return None;
        }
        let alive = self.alive();
        let choice = self.rng.below(alive.len() as u64) as usize;
        alive.get(choice).map(|node| self.nodes[*node].who.id.clone())
    }

    fn somebody_stops(&mut self) {
        let alive = self.alive();
        let choice = self.rng.below(alive.len() as u64) as usize;
        let Some(&node) = alive.get(choice).filter(|node| self.nodes[**node].runs()) else { return };
        self.tally.count(WorldFault::StopStart);
        self.tell(node, Input::Stop);
        self.step(node);
    }

    fn somebody_falls_ill(&mut self) {
        let alive = self.alive();
        let choice = self.rng.below(alive.len() as u64) as usize;
        let Some(&node) = alive.get(choice).filter(|node| self.nodes[**node].runs()) else { return };
        let Some(threshold) = self.nodes[node]
            .process
            .as_ref()
            .and_then(|process| process.core.settings().options().health_failures)
        else {
            return;
        };
        self.tally.count(WorldFault::Sick);
        self.nodes[node].sick = true;
        for _ in 0..threshold {
            self.tell(node, Input::Health(false));
        }
        self.step(node);
        let span = self.a_while();
        self.queue.push(self.now + span, WorldEvent::Recover(node));
    }

    pub(crate) fn recover(&mut self, node: usize) {
        self.nodes[node].sick = false;
        if self.nodes[node].frozen {
            self.queue.push(self.now + self.options.shortest_ttl() / 8, WorldEvent::Recover(node));
            return;
        }
        self.tell(node, Input::Health(true));
        self.step(node);
    }

    /// Somebody looks who leads and asks them to step down, as the command does.
    pub(crate) fn outsider_asks(&mut self) {
        self.tally.count(WorldFault::Asked);
        let to = self.somebody();
        let outsider = &mut self.nodes[OUTSIDER];
        let Some(process) = &outsider.process else { return };
        let (looks, asks) = (Arc::clone(&process.backend), Arc::clone(&process.backend));
        let on = self.election.clone();
        say!(self, "the outsider asks to step down for {to:?}");
        let record = self.store.record().as_ref().and_then(|found| found.0.epoch);
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
    fn outsider_pauses(&mut self) {
        self.tally.count(WorldFault::ElectionPaused);
        let span = Duration::from_nanos(1 + self.rng.below(2 * self.options.longest_ttl()));
        // Each is another pause: nothing else about this time counts.
        let at = Some(Wall::from_unix_nanos(i64::try_from(self.now / 1_000).unwrap_or_default() * 1_000));
        let pause = if self.rng.one_in(4) { None } else { Pause::new(span, None, at) };
        let outsider = &mut self.nodes[OUTSIDER];
        let Some(process) = &outsider.process else { return };
        let backend = Arc::clone(&process.backend);
        let on = self.election.clone();
        say!(self, "the outsider pauses: {pause:?}");
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
