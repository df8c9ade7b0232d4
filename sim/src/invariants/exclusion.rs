//! No two leaderships at once, in true time.
//!
//! A leadership lasts, for this purpose, from the instant its holder was told to believe in it until the work has
//! ended, or until its deadline on the holder's own clock, whichever comes first: at the deadline the work is killed,
//! and `is_leader()` turns false by itself, even in a process that stands still. That a core believes is checked
//! beside it, so that a driver which forgot to say so would not hide it.
//!
//! **What the loss of a record excuses.** Somebody deletes the record, or the store falls back to before it: the
//! store has forgotten that the leader exists. A candidate that has seen the record, and sees it gone, waits for the
//! leader's ttl and is held to it. One that never saw it has nothing to wait for: no election on a register could do
//! better, and GUARANTEES.md says so. Nor has one that saw the record and then, with no gap that it could notice,
//! a successor's: to it this is a takeover like any other. So an overlap is excused only if the record of the
//! older leadership was destroyed, and the younger one's claim was sent after that by a candidate which did not know.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::{Epoch, Incarnation};

use super::{Finding, Verdict};

const NAME: &str = "exclusion";

/// A leadership in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reign {
    /// Whose.
    pub who: Incarnation,
    /// Its number.
    pub epoch: Epoch,
}

/// The records that were destroyed, and the claims that could not know of them.
#[derive(Debug, Default)]
pub struct Losses {
    destroyed: BTreeSet<Epoch>,
    unaware: BTreeMap<(Incarnation, Epoch), BTreeSet<Epoch>>,
}

impl Losses {
    /// The held record of that epoch is gone, and no longer because of anybody's claim or release.
    pub fn destroyed(&mut self, epoch: Epoch) {
        self.destroyed.insert(epoch);
    }

    /// A claim for `epoch` leaves a candidate that knows of the records `known`.
    pub fn claims(&mut self, who: Incarnation, epoch: Epoch, known: &BTreeSet<Epoch>) {
        if self.destroyed.is_empty() {
            return;
        }
        let unaware: BTreeSet<Epoch> = self.destroyed.difference(known).copied().collect();
        self.unaware.insert((who, epoch), unaware);
    }

    /// Whether the two may overlap, because the younger could not know of the older.
    pub fn excuse(&self, one: Reign, other: Reign) -> bool {
        let (older, younger) = if one.epoch < other.epoch { (one, other) } else { (other, one) };
        self.unaware.get(&(younger.who, younger.epoch)).is_some_and(|unaware| unaware.contains(&older.epoch))
    }
}

/// Judges one that begins or is prolonged against another that is in force. True if it had to be excused.
pub fn check(one: Reign, other: Reign, losses: &Losses) -> Result<bool, Finding> {
    if losses.excuse(one, other) {
        return Ok(true);
    }
    let said = format!(
        "{:?} leads under {:?} while {:?} leads under {:?}",
        one.who, one.epoch, other.who, other.epoch
    );
    Err(Finding::new(NAME, said))
}

/// A driver acts on a leadership exactly as long as its core believes in one.
pub fn agree(core: Option<Epoch>, driver: Option<Epoch>) -> Verdict {
    match core {
        Some(epoch) if driver != Some(epoch) => {
            Err(Finding::new(NAME, format!("the core believes in {epoch:?}, the driver in {driver:?}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reign(who: u128, epoch: u64) -> Reign {
        Reign { who: Incarnation::from_bits(who), epoch: Epoch::new(epoch).unwrap() }
    }

    #[test]
    fn two_at_once_are_found() {
        assert!(check(reign(1, 5), reign(2, 6), &Losses::default()).is_err());
        assert!(agree(Epoch::new(5), None).is_err());
    }

    #[test]
    fn only_a_claim_that_could_not_know_of_the_destroyed_record_is_excused() {
        let (old, young) = (reign(1, 5), reign(2, 9));
        let mut losses = Losses::default();
        losses.destroyed(old.epoch);
        losses.claims(young.who, young.epoch, &BTreeSet::new());
        assert_eq!(check(young, old, &losses), Ok(true));
        assert!(check(reign(3, 9), old, &losses).is_err(), "another's claim");
        losses.claims(young.who, young.epoch, &BTreeSet::from([old.epoch]));
        assert!(check(young, old, &losses).is_err(), "it had seen the record");
    }
}
