//! A pause keeps everybody out until it ends, and it ends by itself.
//!
//! No claim is taken before the span of the pause has passed on the fastest clock that there may be. Until then no renewal and no
//! release takes the pause out of the record, and no leader puts the end off from one renewal to the next. The ledger is kept apart from the
//! record, so that a pause that the record has lost is still in force.

use std::collections::BTreeMap;

use bellwether_backend::Record;

use super::{BrokenInvariant, Verdict};
use crate::call::Purpose;
use crate::clock::PPM_TRUE;
use crate::time::{Nanos, nanos};

const NAME: &str = "pauses";

/// The pause that is in force, and until when any candidate may think that one is.
#[derive(Debug)]
pub struct Pauses {
    /// Of the slowest and the fastest clock, in millionths of true time.
    clocks: (u64, u64),
    /// How long a write may be on its way, and a candidate may take to look.
    lateness: Nanos,
    in_force: Option<InForce>,
    /// When each pause was first written, by its own time. One that is written again, by a try that never heard that the first was taken,
    /// counts from the first for those who saw that.
    first: BTreeMap<i64, Nanos>,
    /// When the last one that saw any pause may still wait for it.
    waited_for_until: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct InForce {
    /// Nobody is elected before.
    from_end: Nanos,
    /// No renewal after the first says that it ends later.
    latest_end: Option<Nanos>,
}

impl Pauses {
    /// In a world with such clocks.
    pub fn new(clocks: (u64, u64), lateness: Nanos) -> Pauses {
        Pauses { clocks, lateness, in_force: None, first: BTreeMap::new(), waited_for_until: 0 }
    }

    /// The store took a write.
    pub fn wrote(&mut self, now: Nanos, purpose: Purpose, after: &Record) -> Verdict {
        let left = after.paused.as_ref().map_or(0, |pause| nanos(pause.span()));
        let slow = now + self.scaled(left, self.clocks.0);
        if left > 0 {
            self.waited_for_until = self.waited_for_until.max(slow + self.lateness);
        }
        match (purpose, &mut self.in_force) {
            (Purpose::Pause, _) => {
                let at = after.paused.as_ref().and_then(|pause| pause.at);
                let first = at.map_or(now, |at| *self.first.entry(at.as_unix_nanos()).or_insert(now));
                let from_end = first + self.scaled(left, self.clocks.1);
                self.in_force = (left > 0).then_some(InForce { from_end, latest_end: None });
                Ok(())
            }
            (Purpose::Claim(who), Some(pause)) if now < pause.from_end => {
                let left = pause.from_end - now;
                Err(BrokenInvariant::new(NAME, format!("{who:?} claims {left}ns before the pause is over")))
            }
            (Purpose::Claim(_), _) => {
                self.in_force = None;
                Ok(())
            }
            (Purpose::Renew(..) | Purpose::Release(..), Some(pause)) if left == 0 && now < pause.from_end => {
                let left = pause.from_end - now;
                Err(BrokenInvariant::new(NAME, format!("{purpose:?} ends the pause {left}ns early")))
            }
            (Purpose::Renew(..), Some(pause)) if left > 0 => {
                // A leader that stood still may have looked late; from then on it knows.
                let latest = *pause.latest_end.get_or_insert(slow + self.lateness);
                if slow > latest {
                    let late = slow - latest;
                    return Err(BrokenInvariant::new(
                        NAME,
                        format!("{purpose:?} puts the end off by {late}ns"),
                    ));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The store forgot what it held, or fell back to an earlier pause.
    pub fn content_lost(&mut self, now: Nanos, record: Option<&Record>) {
        self.in_force = None;
        if let Some(pause) = record.and_then(|record| record.paused.as_ref()) {
            let slow = now + self.scaled(nanos(pause.span()), self.clocks.0);
            self.waited_for_until = self.waited_for_until.max(slow + self.lateness);
        }
    }

    /// How much longer some candidate may wait for a pause, given the record as it is; nothing where no pause was ever seen.
    pub fn waited_for(&self, now: Nanos, record: Option<&Record>) -> Nanos {
        let starting = record.and_then(|record| record.paused.as_ref());
        let starting =
            starting.map_or(0, |pause| self.scaled(nanos(pause.span()), self.clocks.0) + self.lateness);
        self.waited_for_until.saturating_sub(now).max(starting)
    }

    fn scaled(&self, span: Nanos, ppm: u64) -> Nanos {
        (u128::from(span) * u128::from(PPM_TRUE) / u128::from(ppm)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;
    use bellwether_core::{Epoch, Incarnation, Pause};
    use std::time::Duration;

    fn paused(seconds: u64) -> Record {
        Record { paused: Pause::new(Duration::from_secs(seconds), None, None), ..Record::default() }
    }

    fn at_10() -> Pauses {
        let mut pauses = Pauses::new((PPM_TRUE, PPM_TRUE), SECOND);
        assert_eq!(pauses.wrote(10 * SECOND, Purpose::Pause, &paused(10)), Ok(()));
        pauses
    }

    #[test]
    fn a_claim_before_the_end_is_found_and_one_after_it_or_after_an_unpause_is_none() {
        let claim = Purpose::Claim(Incarnation::from_bits(1));
        let plain = Record::default();
        assert!(at_10().wrote(20 * SECOND - 1, claim, &plain).is_err());
        assert_eq!(at_10().wrote(20 * SECOND, claim, &plain), Ok(()));
        let mut ended = at_10();
        assert_eq!(ended.wrote(11 * SECOND, Purpose::Pause, &plain), Ok(()));
        assert_eq!(ended.wrote(12 * SECOND, claim, &plain), Ok(()));
    }

    #[test]
    fn a_renewal_that_forgets_the_pause_or_begins_it_anew_is_found() {
        let renew = Purpose::Renew(Incarnation::from_bits(1), Epoch::ZERO);
        assert!(at_10().wrote(12 * SECOND, renew, &Record::default()).is_err());
        assert_eq!(at_10().wrote(20 * SECOND, renew, &Record::default()), Ok(()));
        let mut renewed = at_10();
        assert_eq!(renewed.wrote(15 * SECOND, renew, &paused(10)), Ok(()), "it saw it late");
        assert_eq!(renewed.wrote(17 * SECOND, renew, &paused(8)), Ok(()));
        assert_eq!(renewed.wrote(18 * SECOND, renew, &paused(8)), Ok(()), "it was on its way for a while");
        assert!(renewed.wrote(19 * SECOND, renew, &paused(8)).is_err());
    }

    #[test]
    fn what_is_waited_for_is_known() {
        assert_eq!(at_10().waited_for(15 * SECOND, None), 6 * SECOND);
        assert_eq!(at_10().waited_for(25 * SECOND, Some(&paused(3))), 4 * SECOND);
        assert_eq!(Pauses::new((PPM_TRUE, PPM_TRUE), SECOND).waited_for(0, None), 0);
    }
}
