//! One owner per epoch, ever: of the claims that the store took, and of the leaderships that began.

use std::collections::BTreeMap;

use bellwether_core::{Epoch, Incarnation};

use super::{Finding, Verdict};

const NAME: &str = "one owner per epoch";

/// Who got which number.
#[derive(Debug, Default)]
pub struct Owners {
    of: BTreeMap<Epoch, Incarnation>,
}

impl Owners {
    /// The store took a claim, or somebody begins to lead.
    pub fn owns(&mut self, who: Incarnation, epoch: Epoch) -> Verdict {
        match self.of.insert(epoch, who) {
            Some(before) if before != who => {
                Err(Finding::new(NAME, format!("{epoch:?} was {before:?}'s and is now {who:?}'s")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_found_and_the_same_one_again_is_not() {
        let (one, two) = (Incarnation::from_bits(1), Incarnation::from_bits(2));
        let epoch = Epoch::new(3).unwrap();
        let mut owners = Owners::default();
        assert_eq!(owners.owns(one, epoch), Ok(()));
        assert_eq!(owners.owns(one, epoch), Ok(()));
        assert!(owners.owns(two, epoch).is_err());
    }
}
