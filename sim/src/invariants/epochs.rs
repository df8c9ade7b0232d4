//! Epochs strictly up, in the order of the true instants at which leaderships begin.
//!
//! The number is the fencing token: a resource that has seen a higher one refuses the lower. Excused is the same pair
//! as in [`exclusion`](super::exclusion): a claim that was already granted when its record was destroyed may begin
//! after one that could not know of it. And where the store forgot which epochs it issued, as one restored from a backup does,
//! a candidate may repeat those that it never read; but whatever a candidate has read, its claims stay above.

use bellwether_core::Epoch;

use super::exclusion::{Losses, SimLeadership};
use super::{BrokenInvariant, Verdict};

const NAME: &str = "epochs up";

/// How many of the last leaderships a new one is compared with. Higher ones than those would have been found then.
const KEPT: usize = 64;

/// The leaderships that began.
#[derive(Debug, Default)]
pub struct Epochs {
    begun: Vec<SimLeadership>,
}

impl Epochs {
    /// One begins.
    pub fn begins(&mut self, leadership: SimLeadership, losses: &Losses) -> Verdict {
        let above = |before: &&SimLeadership| {
            let excused = losses.excuse(leadership, **before) || losses.may_repeat(leadership, before.epoch);
            before.epoch >= leadership.epoch && !excused
        };
        if let Some(before) = self.begun.iter().rev().take(KEPT).find(above) {
            let said = format!(
                "{:?} of {:?} begins after {:?} of {:?}",
                leadership.epoch, leadership.who, before.epoch, before.who
            );
            return Err(BrokenInvariant::new(NAME, said));
        }
        self.begun.push(leadership);
        Ok(())
    }

    /// Judges a claim that leaves a candidate which has read epochs up to `highest`.
    pub fn claims(epoch: Epoch, highest: Epoch) -> Verdict {
        if epoch <= highest {
            return Err(BrokenInvariant::new(NAME, format!("claims {epoch:?} and has read {highest:?}")));
        }
        Ok(())
    }

    /// The highest that began.
    pub fn highest(&self) -> Option<Epoch> {
        self.begun.iter().map(|leadership| leadership.epoch).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::Incarnation;

    fn leadership(who: u128, epoch: u64) -> SimLeadership {
        SimLeadership { who: Incarnation::from_bits(who), epoch: Epoch::new(epoch).unwrap() }
    }

    #[test]
    fn a_repeated_and_a_smaller_number_are_found() {
        let losses = Losses::default();
        let mut epochs = Epochs::default();
        assert_eq!(epochs.begins(leadership(1, 4), &losses), Ok(()));
        assert_eq!(epochs.begins(leadership(1, 9), &losses), Ok(()));
        assert!(epochs.begins(leadership(2, 9), &losses).is_err());
        assert!(epochs.begins(leadership(2, 5), &losses).is_err());
        assert_eq!(epochs.highest(), Epoch::new(9));
        assert!(Epochs::claims(leadership(1, 4).epoch, leadership(1, 4).epoch).is_err());
        assert_eq!(Epochs::claims(leadership(1, 5).epoch, leadership(1, 4).epoch), Ok(()));
    }
}
