//! Whoever steps down with a cooldown, or is told of one, claims nothing before it is over.
//!
//! Judged on the candidate's own clock and for one start of it: a cooldown that outlives a restart depends on a note
//! that may be lost, and on wall clocks.

use std::time::Duration;

use bellwether_core::Boot;

use super::{BrokenInvariant, Verdict};

const NAME: &str = "cooldown";

/// Until when one candidate stays away.
#[derive(Clone, Debug, Default)]
pub struct Cooldown {
    until: Boot,
}

impl Cooldown {
    /// It releases and is to stay away, or the store tells it to.
    pub fn begins(&mut self, now: Boot, span: Duration) {
        self.until = self.until.max(now + span);
    }

    /// Judges a claim that leaves.
    pub fn claims(&self, now: Boot) -> Verdict {
        if now < self.until {
            return Err(BrokenInvariant::new(
                NAME,
                format!("claims {:?} before its end", self.until.since(now)),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_before_the_end_is_found() {
        let mut cooldown = Cooldown::default();
        assert_eq!(cooldown.claims(Boot::default()), Ok(()));
        cooldown.begins(Boot::from_nanos(10), Duration::from_nanos(5));
        cooldown.begins(Boot::from_nanos(11), Duration::from_nanos(1));
        assert!(cooldown.claims(Boot::from_nanos(14)).is_err());
        assert_eq!(cooldown.claims(Boot::from_nanos(15)), Ok(()));
    }
}
