//! Of two clones of a leader's process only one goes on.
//!
//! A virtual machine that is restored from one snapshot twice gives two processes with one incarnation and one epoch. Both believe
//! until their next renewal, and no election could know better: that overlap is excused, and so is one with whoever leads after one
//! of them has released, until the other's next renewal. GUARANTEES.md says so.
//!
//! From then on the store decides. A renewal or a release replaces only what this very process has written, or its original before it was
//! cloned. Two clones that write at the same nanosecond write the same beat, and the second may go on in the place of the first; after that
//! the first never does again.

use std::collections::{BTreeMap, BTreeSet};

use super::exclusion::SimLeadership;
use super::{BrokenInvariant, Verdict};

const NAME: &str = "clones";

/// The leaderships that more than one process may believe in.
#[derive(Debug, Default)]
pub struct Clones {
    cloned: BTreeMap<SimLeadership, CloneRenewals>,
    released: BTreeSet<SimLeadership>,
}

/// Who has renewed a leadership since its process was cloned.
#[derive(Debug, Default)]
struct CloneRenewals {
    last: Option<usize>,
    changes: u32,
}

impl Clones {
    /// The process that leads is cloned.
    pub fn cloned(&mut self, leadership: SimLeadership) {
        self.cloned.insert(leadership, CloneRenewals::default());
    }

    /// One process has released the record of that leadership, or claimed over it. Another may still believe in it.
    pub fn released(&mut self, leadership: SimLeadership) {
        if self.cloned.contains_key(&leadership) {
            self.released.insert(leadership);
        }
    }

    /// Whether the two may overlap.
    pub fn excuse(&self, one: SimLeadership, other: SimLeadership) -> bool {
        let same = one == other && self.cloned.contains_key(&one);
        same || self.released.contains(&one) || self.released.contains(&other)
    }

    /// The store took a renewal from that process.
    pub fn renewed(&mut self, leadership: SimLeadership, by: usize) -> Verdict {
        let Some(line) = self.cloned.get_mut(&leadership) else { return Ok(()) };
        line.changes += u32::from(line.last.is_some_and(|last| last != by));
        line.last = Some(by);
        if line.changes > 1 {
            return Err(BrokenInvariant::new(
                NAME,
                format!("two processes go on under {:?}", leadership.epoch),
            ));
        }
        Ok(())
    }
}

/// Judges a renewal or a release that replaced this beat, by a process that has written it, or not.
pub fn check(leadership: SimLeadership, replaced: u64, is_own: bool) -> Verdict {
    if is_own {
        return Ok(());
    }
    let said =
        format!("a process goes on under {:?} over beat {replaced}, which is a clone's", leadership.epoch);
    Err(BrokenInvariant::new(NAME, said))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::{Epoch, Incarnation};

    fn leadership(who: u128, epoch: u64) -> SimLeadership {
        SimLeadership { who: Incarnation::from_bits(who), epoch: Epoch::new(epoch).unwrap() }
    }

    #[test]
    fn two_that_go_on_in_turn_are_found_and_one_that_takes_the_place_of_the_other_is_not() {
        let mut clones = Clones::default();
        for by in [1, 2, 1, 2] {
            assert_eq!(clones.renewed(leadership(1, 5), by), Ok(()), "nobody was cloned");
        }
        clones.cloned(leadership(1, 5));
        for by in [1, 1, 2, 2] {
            assert_eq!(clones.renewed(leadership(1, 5), by), Ok(()));
        }
        assert!(clones.renewed(leadership(1, 5), 1).is_err());
    }

    #[test]
    fn what_another_wrote_is_found() {
        assert_eq!(check(leadership(1, 5), 7, true), Ok(()));
        assert!(check(leadership(1, 5), 8, false).is_err());
    }

    #[test]
    fn only_clones_may_overlap_and_whoever_follows_one_that_released() {
        let mut clones = Clones::default();
        assert!(!clones.excuse(leadership(1, 5), leadership(1, 5)));
        clones.released(leadership(1, 5));
        clones.cloned(leadership(1, 5));
        assert!(
            clones.excuse(leadership(1, 5), leadership(1, 5))
                && !clones.excuse(leadership(2, 6), leadership(1, 5))
        );
        clones.released(leadership(1, 5));
        assert!(
            clones.excuse(leadership(2, 6), leadership(1, 5))
                && !clones.excuse(leadership(2, 6), leadership(3, 7))
        );
    }
}
