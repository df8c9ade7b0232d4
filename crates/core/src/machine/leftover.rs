//! A record in this candidate's own name that it does not lead on: what is left of a claim whose outcome it could not learn.
//!
//! Such a record keeps everybody else out, so it is claimed again, under a new epoch. But a candidate whose claims are written and
//! still fail (it lacks a right, say) would keep all others out for ever that way. So after a few claims in a row it releases the
//! record and stays out of the election for longer than a ttl: somebody else gets the lead even if the release fails too.

use super::Core;
use super::state::State;
use crate::{Grant, Seen};

/// How often in a row a candidate claims a record that names it already.
const RECLAIMS_MAX: u8 = 2;

#[derive(Clone, Debug, Default)]
pub(super) struct Leftover {
    grant: Option<Grant>,
    /// Claims over records in our own name since anything else was seen.
    reclaims: u8,
}

impl Core {
    pub(super) fn note_leftover(&mut self, seen: &Seen) {
        if let State::Leader(_) | State::Releasing(_) = self.state {
            return;
        }
        match (seen.is_held_by(&self.who), seen.epoch) {
            (true, Some(epoch)) => {
                let ttl = seen.ttl.unwrap_or(self.settings.timing().ttl());
                let incarnation = self.who.incarnation;
                let grant = Grant { epoch, incarnation, ttl, counted_from: self.now, after_crash: false };
                self.leftover.grant = Some(grant);
            }
            (true, None) => {}
            (false, _) => self.leftover = Leftover::default(),
        }
    }

    /// A grant was promoted or given back: an older record in our name is none any more.
    pub(super) fn forget_leftover(&mut self, grant: &Grant) {
        if self.leftover.grant.as_ref().is_some_and(|left| left.epoch <= grant.epoch) {
            self.leftover.grant = None;
        }
    }

    /// Whether the record in our name may be claimed again; counts.
    pub(super) fn may_reclaim(&mut self) -> bool {
        let may = self.leftover.reclaims < RECLAIMS_MAX;
        self.leftover.reclaims = self.leftover.reclaims.saturating_add(1);
        may
    }

    /// Releases it and stays out, so that others get their chance.
    pub(super) fn withdraw(&mut self) {
        self.release_leftover();
        self.leftover = Leftover::default();
        self.cooldown_until = self.cooldown_until.max(self.now + self.settings.stay_out());
    }

    /// Releases it, if there is one that nothing else takes care of.
    pub(super) fn release_leftover(&mut self) {
        if self.ending.is_none()
            && self.unanswered.len() < super::CALLS_MAX
            && let Some(grant) = self.leftover.grant.take()
        {
            self.give_back(grant);
        }
    }
}
