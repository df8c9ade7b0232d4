//! Of two clones of a leader's process only one goes on.
//!
//! A virtual machine that is restored from one snapshot twice gives two processes with one incarnation and one epoch. Both believe
//! until their next renewal, and no election could know better: that overlap is excused, and so is one with whoever leads after one
//! of them has let go, until the other's next renewal. GUARANTEES.md says so.
//!
//! From then on the store decides. A renewal or a release replaces only what this very process has written, or its original before it was
//! cloned. Two clones that write at the same nanosecond write the same beat, and the second may go on in the place of the first; after that
//! the first never does again.

use std::collections::{BTreeMap, BTreeSet};

use super::exclusion::Reign;
use super::{Finding, Verdict};

const NAME: &str = "clones";

/// The leaderships that more than one process may believe in.
#[derive(Debug, Default)]
pub struct Clones {
    cloned: BTreeMap<Reign, Line>,
    let_go: BTreeSet<Reign>,
}

/// Who has renewed a leadership since its process was cloned.
#[derive(Debug, Default)]
struct Line {
    last: Option<usize>,
    changes: u32,
}

impl Clones {
    /// The process that leads is cloned.
    pub fn cloned(&mut self, reign: Reign) {
        self.cloned.insert(reign, Line::default());
    }

    /// One process has released the record of that leadership, or claimed over it. Another may still believe in it.
    pub fn let_go(&mut self, reign: Reign) {
        if self.cloned.contains_key(&reign) {
            self.let_go.insert(reign);
        }
    }

    /// Whether the two may overlap.
    pub fn excuse(&self, one: Reign, other: Reign) -> bool {
        let same = one == other && self.cloned.contains_key(&one);
        same || self.let_go.contains(&one) || self.let_go.contains(&other)
    }

    /// The store took a renewal from that process.
    pub fn renewed(&mut self, reign: Reign, by: usize) -> Verdict {
        let Some(line) = self.cloned.get_mut(&reign) else { return Ok(()) };
        line.changes += u32::from(line.last.is_some_and(|last| last != by));
        line.last = Some(by);
        if line.changes > 1 {
            return Err(Finding::new(NAME, format!("two processes go on under {:?}", reign.epoch)));
        }
        Ok(())
    }
}

/// Judges a renewal or a release that replaced this beat, by a process that has written these.
pub fn check(reign: Reign, replaced: u64, written: &BTreeSet<u64>) -> Verdict {
    if written.contains(&replaced) {
        return Ok(());
    }
    let said = format!("a process goes on under {:?} over beat {replaced}, which is a clone's", reign.epoch);
    Err(Finding::new(NAME, said))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::{Epoch, Incarnation};

    fn reign(who: u128, epoch: u64) -> Reign {
        Reign { who: Incarnation::from_bits(who), epoch: Epoch::new(epoch).unwrap() }
    }

    #[test]
    fn two_that_go_on_in_turn_are_found_and_one_that_takes_the_place_of_the_other_is_not() {
        let mut clones = Clones::default();
        for by in [1, 2, 1, 2] {
            assert_eq!(clones.renewed(reign(1, 5), by), Ok(()), "nobody was cloned");
        }
        clones.cloned(reign(1, 5));
        for by in [1, 1, 2, 2] {
            assert_eq!(clones.renewed(reign(1, 5), by), Ok(()));
        }
        assert!(clones.renewed(reign(1, 5), 1).is_err());
    }

    #[test]
    fn what_another_wrote_is_found() {
        assert_eq!(check(reign(1, 5), 7, &[6, 7].into()), Ok(()));
        assert!(check(reign(1, 5), 8, &[6, 7].into()).is_err());
    }

    #[test]
    fn only_clones_may_overlap_and_whoever_follows_one_that_let_go() {
        let mut clones = Clones::default();
        assert!(!clones.excuse(reign(1, 5), reign(1, 5)));
        clones.let_go(reign(1, 5));
        clones.cloned(reign(1, 5));
        assert!(clones.excuse(reign(1, 5), reign(1, 5)) && !clones.excuse(reign(2, 6), reign(1, 5)));
        clones.let_go(reign(1, 5));
        assert!(clones.excuse(reign(2, 6), reign(1, 5)) && !clones.excuse(reign(2, 6), reign(3, 7)));
    }
}
