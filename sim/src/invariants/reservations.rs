//! A released record that is kept for one candidate is left to it, and not for long.
//!
//! Nobody else's claim replaces it before its span has passed on that one's own clock, and the span is at most a fifth of the ttl
//! and at most a second.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_backend::Record;

use super::{BrokenInvariant, Verdict};
use crate::clock::PPM_TRUE;
use crate::time::{Nanos, nanos};

const NAME: &str = "reservations";

/// When the releases that keep a record for somebody were written, by version.
#[derive(Debug)]
pub struct Reservations {
    /// Of the fastest clock that a candidate may have, in millionths of true time.
    fastest: u64,
    kept: BTreeMap<u64, Nanos>,
}

impl Reservations {
    /// In a world whose fastest clock is this one.
    pub fn new(fastest: u64) -> Reservations {
        Reservations { fastest, kept: BTreeMap::new() }
    }

    /// The store took a release.
    pub fn released(&mut self, now: Nanos, version: u64, record: &Record) -> Verdict {
        let (Some(kept), Some(ttl)) = (&record.reserved, record.ttl) else { return Ok(()) };
        self.kept.insert(version, now);
        if kept.span > (ttl / 5).min(Duration::from_secs(1)) {
            return Err(BrokenInvariant::new(NAME, format!("kept for {:?} at a ttl of {ttl:?}", kept.span)));
        }
        Ok(())
    }

    /// The store took a claim that replaces `before`, of that version.
    pub fn claimed(&self, now: Nanos, version: u64, before: &Record, claim: &Record) -> Verdict {
        let (Some(kept), Some(since)) = (&before.reserved, self.kept.get(&version)) else { return Ok(()) };
        if claim.holder.as_ref().is_some_and(|holder| holder.id == kept.candidate) {
            return Ok(());
        }
        let shortest = u128::from(nanos(kept.span)) * u128::from(PPM_TRUE) / u128::from(self.fastest);
        if u128::from(now - since) < shortest {
            let said = format!("{:?} takes what is kept for {:?}", claim.holder, kept.candidate);
            return Err(BrokenInvariant::new(NAME, said));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;
    use bellwether_backend::Reservation;
    use bellwether_core::{CandidateId, Holder};

    fn id(name: &str) -> CandidateId {
        CandidateId::new(name).unwrap()
    }

    fn released(span: Duration) -> Record {
        let reserved = Some(Reservation { candidate: id("a"), span });
        Record { reserved, ttl: Some(Duration::from_secs(10)), ..Record::default() }
    }

    #[test]
    fn who_takes_too_early_what_is_kept_for_another_is_found() {
        let claim_of =
            |name| Record { holder: Some(Holder { id: id(name), incarnation: None }), ..Record::default() };
        let before = released(Duration::from_secs(1));
        let mut reservations = Reservations::new(PPM_TRUE);
        assert_eq!(reservations.released(SECOND, 7, &before), Ok(()));
        assert_eq!(reservations.claimed(SECOND, 7, &before, &claim_of("a")), Ok(()));
        assert!(reservations.claimed(2 * SECOND - 1, 7, &before, &claim_of("b")).is_err());
        assert_eq!(reservations.claimed(2 * SECOND, 7, &before, &claim_of("b")), Ok(()));
    }

    #[test]
    fn a_record_that_is_kept_for_too_long_is_found() {
        let mut reservations = Reservations::new(PPM_TRUE);
        assert!(reservations.released(0, 7, &released(Duration::from_millis(1_001))).is_err());
    }
}
