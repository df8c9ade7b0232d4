//! A grant is used or given back, never forgotten: a record in the name of somebody who does not lead keeps everybody
//! else waiting.

use std::collections::BTreeMap;

use bellwether_core::{Boot, Epoch};

use super::{BrokenInvariant, Verdict};

const NAME: &str = "grants";

/// What one candidate was granted and has neither led on nor given back.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    open: BTreeMap<Epoch, Boot>,
    last_led: Option<Epoch>,
}

impl Grants {
    /// A claim was answered with a grant; by `until` something must have come of it.
    pub fn granted(&mut self, epoch: Epoch, until: Boot) {
        if self.last_led != Some(epoch) {
            self.open.insert(epoch, until);
        }
    }

    /// It is led on.
    pub fn led(&mut self, epoch: Epoch) {
        self.last_led = Some(epoch);
        self.open.remove(&epoch);
    }

    /// It is being given back.
    pub fn given_back(&mut self, epoch: Epoch) {
        self.open.remove(&epoch);
    }

    /// Judges what is open after the candidate has done everything that it wanted to do at `now`.
    pub fn check(&self, now: Boot) -> Verdict {
        match self.open.iter().find(|(_, until)| **until <= now) {
            Some((epoch, _)) => Err(BrokenInvariant::new(
                NAME,
                format!("{epoch:?} was granted, and neither led on nor given back"),
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_without_consequence_is_found() {
        let epoch = |number| Epoch::new(number).unwrap();
        let mut grants = Grants::default();
        grants.granted(epoch(1), Boot::from_nanos(5));
        grants.granted(epoch(2), Boot::from_nanos(9));
        assert_eq!(grants.check(Boot::from_nanos(4)), Ok(()));
        assert!(grants.check(Boot::from_nanos(5)).is_err());
        grants.given_back(epoch(1));
        grants.led(epoch(2));
        grants.granted(epoch(2), Boot::from_nanos(9));
        assert_eq!(grants.check(Boot::from_nanos(9)), Ok(()));
    }
}
