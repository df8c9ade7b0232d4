//! What a candidate knows of its election: the epochs, who leads, and whether the leader is alive.

use super::Core;
use crate::{Boot, CandidateId, CoreEvent, Epoch, Proof, Seen};

/// Knowledge that outlives attempts and leaderships.
#[derive(Clone, Debug, Default)]
pub(super) struct ElectionView {
    /// The highest epoch ever seen.
    highest: Epoch,
    /// The highest epoch that this candidate has led under or given back. It never leads under it again.
    spent: Epoch,
    /// The outer `None` before anything was seen.
    leader: Option<Option<CandidateId>>,
    proof: Option<Proof>,
    /// When the record is free for all; `None` if that is not known, or this candidate has held it since.
    free_at: Option<Boot>,
    /// Until when the election is paused, as last seen.
    paused_until: Boot,
}

impl ElectionView {
    pub(super) fn highest(&self) -> Epoch {
        self.highest
    }

    pub(super) fn leader(&self) -> Option<&CandidateId> {
        self.leader.as_ref().and_then(Option::as_ref)
    }

    /// What is known about the life of the holder; `None` before anything was seen.
    pub(super) fn proof(&self) -> Option<Proof> {
        self.proof
    }

    /// Whether the record was free for all when it was last seen, or has expired since.
    pub(super) fn is_free(&self, now: Boot) -> bool {
        self.free_at.is_some_and(|free_at| now >= free_at)
    }

    pub(super) fn paused_until(&self) -> Boot {
        self.paused_until
    }

    /// Whether this candidate may still lead under this epoch.
    pub(super) fn is_unspent(&self, epoch: Epoch) -> bool {
        epoch > self.spent
    }

    pub(super) fn saw(&mut self, epoch: Epoch) {
        self.highest = self.highest.max(epoch);
    }

    /// This candidate leads under this epoch, or gives it back.
    pub(super) fn spend(&mut self, epoch: Epoch) {
        self.saw(epoch);
        self.spent = self.spent.max(epoch);
        self.free_at = None;
    }

    /// Whether this is news.
    fn leader_is(&mut self, leader: &Option<CandidateId>) -> bool {
        let changed = self.leader.as_ref() != Some(leader);
        self.leader = Some(leader.clone());
        changed
    }
}

impl Core {
    /// Remembers what the store showed: the highest epoch, and who leads.
    pub(super) fn learn(&mut self, seen: &Seen) {
        self.view.proof = Some(seen.proof);
        self.view.paused_until = seen.paused.as_ref().map_or(Boot::default(), |paused| paused.until);
        let is_held = matches!(seen.proof, Proof::Record | Proof::Alive);
        self.view.free_at = seen.claimable_at().or((!is_held).then_some(self.now));
        self.learn_own_record(seen);
        if let Some(epoch) = seen.epoch {
            self.view.saw(epoch);
        }
        // What the store says about this candidate is old: it announces its own leaderships when they begin. So is what the store
        // says about the time before the present leadership.
        let old = self.leadership().is_some() && !self.overtaken_by(seen);
        if !seen.is_held_by(&self.who) && !old {
            // Also where that one is gone again, and its leadership was never seen: its epoch remains.
            let another_led = match seen.epoch {
                Some(epoch) => self.view.is_unspent(epoch),
                None => seen.leader().is_some(),
            };
            if another_led {
                self.stay_away.another_leads();
            }
            self.leader_is(seen.leader().cloned(), seen.epoch);
        }
    }

    pub(super) fn leader_is(&mut self, leader: Option<CandidateId>, epoch: Option<Epoch>) {
        if self.view.leader_is(&leader) {
            let epoch = epoch.filter(|_| leader.is_some());
            self.tell(CoreEvent::LeaderChanged { leader, epoch });
        }
    }

    /// Whether somebody else is known to lead, or to have led, since this candidate did.
    pub(super) fn another_has_led(&self) -> bool {
        self.leader().is_some() || self.view.is_unspent(self.view.highest())
    }

    /// This candidate leads no more, and nobody else is known to.
    pub(super) fn no_longer_leads(&mut self) {
        if self.leader() == Some(&self.who.id) {
            self.leader_is(None, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn e(number: u64) -> Epoch {
        Epoch::new(number).unwrap()
    }

    #[test]
    fn an_epoch_that_was_spent_stays_spent_and_counts_as_seen() {
        let mut view = ElectionView::default();
        view.spend(e(5));
        view.spend(e(3));
        assert_eq!(view.highest(), e(5));
        assert!(!view.is_unspent(e(5)) && view.is_unspent(e(6)));
        view.saw(e(9));
        assert!(view.is_unspent(e(6)), "what others lead under is not spent");
        view.saw(e(7));
        assert_eq!(view.highest(), e(9));
    }

    #[test]
    fn a_leader_is_news_once_and_so_is_that_nobody_leads() {
        let mut view = ElectionView::default();
        let b = Some(CandidateId::new("b").unwrap());
        assert!(view.leader_is(&None), "nothing was known");
        assert!(!view.leader_is(&None));
        assert!(view.leader_is(&b) && !view.leader_is(&b));
        assert_eq!(view.leader(), b.as_ref());
    }
}
