//! One owner per epoch, ever: of the claims that the store took, and of the leaderships that began. A second one is excused
//! only where the store forgot that it had issued the number, to a candidate that never read it.

use std::collections::BTreeMap;

use bellwether_core::{Epoch, Incarnation};

use super::exclusion::{Losses, SimLeadership};
use super::{BrokenInvariant, Verdict};

const NAME: &str = "one owner per epoch";

/// Who got which number.
#[derive(Debug, Default)]
pub struct Owners {
    of: BTreeMap<Epoch, Incarnation>,
}

impl Owners {
    /// The store took a claim, or somebody begins to lead.
    pub fn owns(&mut self, leadership: SimLeadership, losses: &Losses) -> Verdict {
        let SimLeadership { who, epoch } = leadership;
        match self.of.insert(epoch, who) {
            Some(before) if before != who && !losses.may_repeat(leadership, epoch) => {
                Err(BrokenInvariant::new(NAME, format!("{epoch:?} was {before:?}'s and is now {who:?}'s")))
            }
            _ => Ok(()),
        }
    }

    /// The highest number that somebody got.
    pub fn highest(&self) -> Epoch {
        self.of.last_key_value().map_or(Epoch::ZERO, |(epoch, _)| *epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_found_and_the_same_one_again_is_not() {
        let leadership =
            |who| SimLeadership { who: Incarnation::from_bits(who), epoch: Epoch::new(3).unwrap() };
        let losses = Losses::default();
        let mut owners = Owners::default();
        assert_eq!(owners.owns(leadership(1), &losses), Ok(()));
        assert_eq!(owners.owns(leadership(1), &losses), Ok(()));
        assert!(owners.owns(leadership(2), &losses).is_err());
        assert_eq!(owners.highest(), leadership(1).epoch);
    }
}
