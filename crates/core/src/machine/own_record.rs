//! A record in this candidate's own name that it does not lead on: what is left of a claim whose outcome it could not learn.
//!
//! Such a record keeps everybody else out, so the candidate claims it again, under a new epoch. But a candidate whose claims are
//! written and still fail (it lacks a right, say) would keep all others out for ever that way. So after a few claims in a row it
//! releases the record and stays out of the election for longer than a ttl: somebody else gets the lead even if the release fails
//! too.

use super::Core;
use super::state::State;
use crate::{Epoch, Grant, Seen};

/// How often in a row a candidate claims a record that names it already.
const RECLAIMS_MAX: u8 = 2;

#[derive(Clone, Debug, Default)]
pub(super) struct OwnRecord {
    grant: Option<Grant>,
    /// Claims over records in our own name since anything else was seen.
    reclaims: u8,
    /// Left by a stop without release, on purpose: it is to expire.
    left: Option<Epoch>,
}

impl OwnRecord {
    /// Forgets the record and the claims on it.
    pub(super) fn forget(&mut self) {
        (self.grant, self.reclaims) = (None, 0);
    }

    /// A grant was given back: an older record in our name is gone too.
    pub(super) fn given_back(&mut self, epoch: Epoch) {
        self.grant.take_if(|grant| grant.epoch <= epoch);
    }

    /// Whether the record may be claimed again; counts.
    pub(super) fn may_reclaim(&mut self) -> bool {
        let may = self.reclaims < RECLAIMS_MAX;
        self.reclaims = self.reclaims.saturating_add(1);
        may
    }

    /// Leaves the record of this leadership to expire.
    pub(super) fn leave(&mut self, epoch: Epoch) {
        self.left = Some(epoch);
    }

    /// The candidate was started: what it left is its own again.
    pub(super) fn started(&mut self) {
        self.left = None;
    }
}

impl Core {
    pub(super) fn learn_own_record(&mut self, seen: &Seen) {
        if let State::Leader(_) | State::Releasing(_) = self.state {
            return;
        }
        match self.grant_shown(seen) {
            Some(grant) => self.own_record.grant = Some(grant),
            None if seen.is_held_by(&self.who) => {}
            None => self.own_record.forget(),
        }
    }

    /// The record, if it names this very start, as a grant to give back.
    fn grant_shown(&self, seen: &Seen) -> Option<Grant> {
        let epoch = seen.epoch.filter(|_| seen.is_held_by(&self.who))?;
        let ttl = seen.ttl.unwrap_or(self.settings.timing().ttl());
        let incarnation = self.who.incarnation;
        Some(Grant { epoch, incarnation, ttl, counted_from: self.now, after_crash: false })
    }

    /// Releases a record that names this very start while it neither leads nor competes.
    pub(super) fn disown(&mut self, seen: &Seen) {
        let Some(grant) = self.grant_shown(seen) else { return };
        if !self.work.is_ending() && !self.calls.is_full() && self.own_record.left != Some(grant.epoch) {
            self.give_back(grant);
        }
    }

    /// Releases the record and stays out, so that others get their chance.
    pub(super) fn withdraw(&mut self) {
        self.release_own_record();
        self.own_record.forget();
        self.stay_away.cool_down(self.now + self.settings.withdrawal());
    }

    /// Releases the record, if there is one that nothing else takes care of.
    pub(super) fn release_own_record(&mut self) {
        if !self.work.is_ending()
            && !self.calls.is_full()
            && let Some(grant) = self.own_record.grant.take()
        {
            self.give_back(grant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_claimed_again_only_a_few_times_in_a_row() {
        let mut record = OwnRecord::default();
        assert!(record.may_reclaim() && record.may_reclaim());
        assert!(!record.may_reclaim());
        record.forget();
        assert!(record.may_reclaim());
    }

    #[test]
    fn a_record_that_was_left_on_purpose_is_left_until_the_next_start() {
        let mut record = OwnRecord::default();
        record.leave(Epoch::MAX);
        record.forget();
        assert_eq!(record.left, Some(Epoch::MAX));
        record.started();
        assert_eq!(record.left, None);
    }
}
