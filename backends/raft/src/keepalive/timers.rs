//! What rings when.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::{Boot, CandidateId, ElectionName};

/// Something that ends by time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timed {
    /// A session without a keepalive.
    Session(crate::command::SessionId),
    /// A reservation, by the log index that made it.
    Reservation(ElectionName, u64),
    /// A cooldown, by the log index that began it.
    Cooldown(ElectionName, CandidateId, u64),
}

/// At most one instant for each.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    ends: BTreeMap<Timed, Boot>,
    order: BTreeSet<(Boot, Timed)>,
}

impl Timers {
    /// Rings at that instant, and not at any earlier one that was set.
    pub(super) fn set(&mut self, timed: Timed, at: Boot) {
        self.cancel(&timed);
        self.ends.insert(timed.clone(), at);
        self.order.insert((at, timed));
    }

    pub(super) fn cancel(&mut self, timed: &Timed) {
        if let Some(at) = self.ends.remove(timed) {
            self.order.remove(&(at, timed.clone()));
        }
    }

    pub(super) fn next(&self) -> Option<Boot> {
        self.order.first().map(|(at, _)| *at)
    }

    /// The first that has rung.
    pub(super) fn pop(&mut self, now: Boot) -> Option<Timed> {
        if self.next().is_none_or(|at| now < at) {
            return None;
        }
        let (_, timed) = self.order.pop_first()?;
        self.ends.remove(&timed);
        Some(timed)
    }

    pub(super) fn reservation_end(&self, on: &ElectionName) -> Option<Boot> {
        let (from, to) = (Timed::Reservation(on.clone(), 0), Timed::Reservation(on.clone(), u64::MAX));
        self.ends.range(from..=to).next_back().map(|(_, at)| *at)
    }

    pub(super) fn cooldown_end(&self, on: &ElectionName, id: &CandidateId) -> Option<Boot> {
        let cooldown = |since| Timed::Cooldown(on.clone(), id.clone(), since);
        self.ends.range(cooldown(0)..=cooldown(u64::MAX)).next_back().map(|(_, at)| *at)
    }
}
