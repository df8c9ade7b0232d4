//! What happens to the store and the way to it.

use super::WorldFault;
use crate::queue::WorldEvent;
use crate::world::{World, say};

impl World {
    pub(super) fn slow_spell(&mut self) {
        if self.spike.is_some() {
            return;
        }
        self.tally.count(WorldFault::Spike);
        let most = 1 + self.rng.below(self.options.shortest_ttl());
        self.spike = Some(most);
        let span = 2 * self.a_while();
        say!(self, "everything is up to {most}ns slower for {span}ns");
        self.queue.push(self.now + span, WorldEvent::Calm);
    }

    pub(super) fn store_outage(&mut self) {
        if self.outage {
            return;
        }
        self.tally.count(WorldFault::Outage);
        self.outage = true;
        let span = self.a_while();
        say!(self, "the store is away for {span}ns");
        self.queue.push(self.now + span, WorldEvent::StoreBack);
    }

    /// The store falls back, and every connection breaks; each comes back by itself, in its own time.
    ///
    /// What is on its way to the store at that moment is lost with the connections. A store that fell back and went
    /// on talking over the old ones would let through what was judged by what stood there before, and nobody could
    /// notice: that is outside what any register can promise.
    pub(super) fn roll_back(&mut self) {
        self.tally.count(WorldFault::Rollback);
        let deepest = if self.rng.one_in(2) { 4 } else { 24 };
        let writes = (1 + self.rng.below(deepest) as usize) * self.options.elections;
        let with_count = self.rng.one_in(2);
        let before = self.store.roll_back(writes, with_count);
        say!(self, "the store falls back by {writes} writes, its count {with_count}");
        for (key, before) in self.keys().zip(&before) {
            say!(self, "  {key:?} to {:?}", self.store.record(key));
            self.content_lost(key, before);
        }
        // The dead have connections too: what they had sent is lost like everybody's.
        for node in self.nodes.iter_mut().filter(|node| node.process.is_none()) {
            node.connection_number += 1;
        }
        for node in self.alive() {
            let away = if self.rng.one_in(3) {
                self.a_while()
            } else {
                self.rng.below(self.options.shortest_ttl() / 8)
            };
            self.reset(node, away);
        }
        self.reset(crate::world::OUTSIDER, 1);
    }

    pub(super) fn delete(&mut self) {
        let key = self.some_election();
        if self.store.record(key).is_none() {
            return;
        }
        self.tally.count(WorldFault::Delete);
        let before = self.store.delete(key);
        say!(self, "the record of {key:?} is deleted");
        self.content_lost(key, &before);
        self.announce(key);
    }
}
