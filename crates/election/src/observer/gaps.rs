//! For how long nobody led, as the candidate that took over saw it.
//!
//! A gap is measured once, by the one who ends it, on its own clock:
//! - a *handover* from the moment the release was seen,
//! - a *failover* from the moment the leader was known to be dead where the store can prove that, else from its last sign of life.
//!
//! The first leadership after a start has a gap only if its candidate saw the end of the one before.

use std::time::Duration;

use bellwether_core::{Boot, Candidate, Epoch, Incarnation, Proof, Seen, Wall};

/// How the leadership before a gap ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// It was released.
    Handover,
    /// Its leader died or fell silent.
    Failover,
}

/// What is known of the leadership before the next.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// From when on nobody led.
    free: Option<(Boot, Gap)>,
    /// When another leader last gave a sign of life.
    alive: Option<Boot>,
    /// What its record looked like then.
    mark: Option<Mark>,
}

type Mark = (Option<Incarnation>, Option<Epoch>, Option<Wall>);

impl Gaps {
    pub(super) fn saw(&mut self, now: Boot, who: &Candidate, seen: &Seen) {
        if seen.is_held_by(who) {
            return;
        }
        if seen.leader().is_some() {
            let mark = (seen.holder.as_ref().and_then(|holder| holder.incarnation), seen.epoch, seen.renewed);
            // A session that is open is a sign of life each time it is seen; a record only when it has changed.
            let is_session = seen.renewed.is_none() && seen.proof == Proof::Alive;
            if is_session || self.mark != Some(mark) {
                self.alive = Some(now);
            }
            (self.mark, self.free) = (Some(mark), None);
        } else if self.free.is_none() && self.alive.is_some() {
            let how = if seen.proof == Proof::Dead { Gap::Failover } else { Gap::Handover };
            self.free = Some((now, how));
        }
    }

    /// This candidate's own leadership has ended.
    pub(super) fn ended(&mut self, at: Boot, released: bool) {
        let how = if released { Gap::Handover } else { Gap::Failover };
        *self = Gaps { free: Some((at, how)), ..Gaps::default() };
    }

    /// This candidate leads: for how long nobody did, where that is known.
    pub(super) fn acquired(&mut self, now: Boot) -> Option<(Gap, Duration)> {
        let Gaps { free, alive, .. } = std::mem::take(self);
        let (since, how) = free.or(alive.map(|at| (at, Gap::Failover)))?;
        Some((how, now.since(since)))
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::{CandidateId, Holder};

    use super::*;

    fn at(seconds: u64) -> Boot {
        Boot::default() + Duration::from_secs(100 + seconds)
    }

    fn who() -> Candidate {
        Candidate { id: CandidateId::new("a").unwrap(), incarnation: Incarnation::from_bits(1) }
    }

    fn held(renewed: i64) -> Seen {
        Seen {
            holder: Some(Holder {
                id: CandidateId::new("b").unwrap(),
                incarnation: Some(Incarnation::from_bits(2)),
            }),
            epoch: Epoch::new(7),
            proof: Proof::Alive,
            renewed: Some(Wall::from_unix_nanos(renewed)),
            ..Seen::default()
        }
    }

    fn gap_after(looks: &[(u64, Seen)]) -> Option<(Gap, Duration)> {
        let mut gaps = Gaps::default();
        looks.iter().for_each(|(second, seen)| gaps.saw(at(*second), &who(), seen));
        gaps.acquired(at(20))
    }

    #[test]
    fn a_handover_counts_from_the_release_and_a_failover_from_the_death_or_the_last_renewal() {
        let released = Seen { proof: Proof::Released, ..Seen::default() };
        let dead = Seen { proof: Proof::Dead, ..held(1) };
        let seconds = Duration::from_secs;
        assert_eq!(gap_after(&[(1, held(1)), (19, released.clone())]), Some((Gap::Handover, seconds(1))));
        assert_eq!(gap_after(&[(1, held(1)), (18, dead)]), Some((Gap::Failover, seconds(2))));
        // Looked at again and again, and renewed once.
        let silent = [(1, held(1)), (5, held(2)), (10, held(2)), (15, held(2))];
        assert_eq!(gap_after(&silent), Some((Gap::Failover, seconds(15))));
        assert_eq!(gap_after(&[(1, released)]), None, "nobody was seen to lead");
    }

    #[test]
    fn one_s_own_end_begins_a_gap_too_unless_another_leads_in_between() {
        let mut gaps = Gaps::default();
        gaps.ended(at(1), true);
        assert_eq!(gaps.acquired(at(3)), Some((Gap::Handover, Duration::from_secs(2))));
        gaps.ended(at(4), false);
        gaps.saw(at(5), &who(), &held(1));
        gaps.saw(at(9), &who(), &Seen { proof: Proof::Released, ..Seen::default() });
        assert_eq!(gaps.acquired(at(10)), Some((Gap::Handover, Duration::from_secs(1))));
        assert_eq!(gaps.acquired(at(11)), None, "each gap counts once");
    }
}
