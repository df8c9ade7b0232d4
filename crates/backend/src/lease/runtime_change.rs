//! Candidates that went with their runtime: nobody is left to say that they take part no more.
//!
//! What is remembered of them is forgotten at once. But their work may have outlived their runtime, on a thread of its own, and
//! until the deadline nobody else may begin. So what proves that they live is kept for a ttl more.

use std::collections::HashSet;

use bellwether_core::{Boot, ElectionName, Incarnation};

use super::{LeaseState, Shared};
use crate::Register;

#[derive(Clone)]
pub(super) struct Leaver {
    on: ElectionName,
    who: Incarnation,
    /// Nobody can believe any more that it leads.
    gone_at: Boot,
}

impl<V> LeaseState<V> {
    /// This candidate takes part, whatever was before.
    pub(super) fn takes_part(&mut self, on: &ElectionName, who: Incarnation) {
        self.leavers.retain(|leaver| leaver.who != who || leaver.on != *on);
    }

    /// The runtime of every candidate that was here has ended.
    pub(super) fn all_leave(&mut self, now: Boot) {
        let ttls = self.held.values().filter_map(|held| held.record.ttl).chain(self.own_ttl);
        let gone_at = now + ttls.max().unwrap_or_default();
        let mut all: HashSet<_> = self.cooldown_checked.drain().collect();
        all.extend(self.held.drain().map(|(key, _)| key));
        all.extend(self.beats.drain().map(|(key, _)| key));
        all.extend(self.claims.drain().map(|(key, _)| key));
        self.leavers.extend(all.into_iter().map(|(on, who)| Leaver { on, who, gone_at }));
    }
}

impl<R: Register> Shared<R> {
    /// Retires those whose time has come.
    pub(super) fn retire_leavers(&self) {
        let now = self.clock.boot();
        let mut memory = self.memory();
        let gone: Vec<Leaver> = memory.leavers.extract_if(.., |leaver| leaver.gone_at <= now).collect();
        drop(memory);
        gone.iter().for_each(|leaver| self.register.retire(&leaver.on, leaver.who));
    }
}
