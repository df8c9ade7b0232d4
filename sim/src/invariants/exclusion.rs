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
//! older leadership was destroyed, and the other one's claim was sent after that by a candidate which did not know. Whoever was only
//! told that the record is gone has seen it, and does know.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::{Epoch, Incarnation};

use super::{BrokenInvariant, Verdict};

const NAME: &str = "exclusion";

/// A leadership in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SimLeadership {
    /// Whose.
    pub who: Incarnation,
    /// Its number.
    pub epoch: Epoch,
}

/// What a candidate knows when it sends a claim.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    /// The leaderships whose held record it read last, or saw vanish or fall back.
    pub leaderships: BTreeSet<SimLeadership>,
    /// The highest epoch that it ever read.
    pub highest: Epoch,
}

/// The records that were destroyed, the epochs that the store forgot, and the claims that could not know of them.
#[derive(Debug, Default)]
pub struct Losses {
    destroyed: BTreeSet<SimLeadership>,
    /// The store issued these epochs, above the first and up to the second, and then forgot that it did.
    forgotten: Vec<(Epoch, Epoch)>,
    unaware: BTreeMap<SimLeadership, Unaware>,
}

/// What a claim could not know of.
#[derive(Debug)]
struct Unaware {
    leaderships: BTreeSet<SimLeadership>,
    above: Epoch,
}

impl Losses {
    /// The held record of that leadership is gone, and no longer because of anybody's claim or release.
    pub fn destroyed(&mut self, leadership: SimLeadership) {
        self.destroyed.insert(leadership);
    }

    /// The store lost content, and perhaps its count with it: it may issue again what it issued above `low` and up to `high`.
    pub fn forgotten(&mut self, low: Epoch, high: Epoch) {
        if low < high {
            self.forgotten.push((low, high));
        }
    }

    /// A claim leaves a candidate that knows this much.
    pub fn claims(&mut self, claim: SimLeadership, knows: &Knowledge) {
        if self.destroyed.is_empty() && self.forgotten.is_empty() {
            return;
        }
        let leaderships = self.destroyed.difference(&knows.leaderships).copied().collect();
        self.unaware.insert(claim, Unaware { leaderships, above: knows.highest });
    }

    /// Whether the two may overlap, because the claim of one could not know of the other.
    pub fn excuse(&self, one: SimLeadership, other: SimLeadership) -> bool {
        let unaware = |of: SimLeadership, what: SimLeadership| {
            self.unaware.get(&of).is_some_and(|unaware| unaware.leaderships.contains(&what))
        };
        unaware(one, other) || unaware(other, one)
    }

    /// Whether a claim may carry an epoch that is not above `before`: the store has forgotten that one, and the candidate never
    /// read so high a number.
    pub fn may_repeat(&self, claim: SimLeadership, before: Epoch) -> bool {
        let forgotten = self.forgotten.iter().any(|(low, high)| *low < before && before <= *high);
        forgotten && self.unaware.get(&claim).is_some_and(|unaware| before > unaware.above)
    }
}

/// Judges one that begins or is prolonged against another that is in force. True if it had to be excused.
pub fn check(one: SimLeadership, other: SimLeadership, losses: &Losses) -> Result<bool, BrokenInvariant> {
    if losses.excuse(one, other) {
        return Ok(true);
    }
    let said = format!(
        "{:?} leads under {:?} while {:?} leads under {:?}",
        one.who, one.epoch, other.who, other.epoch
    );
    Err(BrokenInvariant::new(NAME, said))
}

/// A driver acts on a leadership exactly as long as its core believes in one.
pub fn agree(core: Option<Epoch>, driver: Option<Epoch>) -> Verdict {
    match core {
        Some(epoch) if driver != Some(epoch) => Err(BrokenInvariant::new(
            NAME,
            format!("the core believes in {epoch:?}, the driver in {driver:?}"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leadership(who: u128, epoch: u64) -> SimLeadership {
        SimLeadership { who: Incarnation::from_bits(who), epoch: Epoch::new(epoch).unwrap() }
    }

    #[test]
    fn two_at_once_are_found() {
        assert!(check(leadership(1, 5), leadership(2, 6), &Losses::default()).is_err());
        assert!(agree(Epoch::new(5), None).is_err());
    }

    #[test]
    fn only_a_claim_that_could_not_know_of_the_destroyed_record_is_excused() {
        let (old, young) = (leadership(1, 5), leadership(2, 9));
        let mut losses = Losses::default();
        losses.destroyed(old);
        losses.claims(young, &Knowledge::default());
        assert_eq!(check(young, old, &losses), Ok(true));
        assert!(check(leadership(3, 9), old, &losses).is_err(), "another's claim");
        losses.claims(young, &Knowledge { leaderships: [old].into(), ..Knowledge::default() });
        assert!(check(young, old, &losses).is_err(), "it had seen the record");
    }

    #[test]
    fn only_what_the_store_forgot_and_the_claimer_never_read_may_be_issued_again() {
        let claim = leadership(2, 5);
        let mut losses = Losses::default();
        losses.forgotten(leadership(0, 4).epoch, leadership(0, 9).epoch);
        losses.claims(claim, &Knowledge { highest: leadership(0, 4).epoch, ..Knowledge::default() });
        assert!(
            losses.may_repeat(claim, leadership(0, 5).epoch)
                && losses.may_repeat(claim, leadership(0, 9).epoch)
        );
        assert!(
            !losses.may_repeat(claim, leadership(0, 4).epoch)
                && !losses.may_repeat(claim, leadership(0, 10).epoch)
        );
        losses.claims(claim, &Knowledge { highest: leadership(0, 6).epoch, ..Knowledge::default() });
        assert!(!losses.may_repeat(claim, leadership(0, 5).epoch));
    }
}
