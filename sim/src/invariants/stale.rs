//! Stale writes never win: what the store takes touches exactly what its sender meant.
//!
//! A renewal and a release of epoch *n* replace the record of epoch *n* and of the same incarnation, nothing else. A
//! request changes nothing but the request, and a pause touches no leadership. A claim's epoch is above the one that it replaces.

use bellwether_backend::Record;
use bellwether_core::Epoch;

use super::{BrokenInvariant, Verdict};
use crate::call::Purpose;

const NAME: &str = "stale writes";

/// Judges a write that the store took.
pub fn check(purpose: Purpose, before: Option<&Record>, after: &Record) -> Verdict {
    let fine = match purpose {
        Purpose::Renew(who, epoch) => {
            before.is_some_and(|before| before.is_of(who, epoch)) && after.is_of(who, epoch)
        }
        Purpose::Release(who, epoch) => {
            before.is_some_and(|before| before.is_of(who, epoch))
                && after.holder.is_none()
                && after.epoch == Some(epoch)
        }
        Purpose::Request(epoch) => before.is_some_and(|before| {
            before.epoch == Some(epoch)
                && Record { request: before.request.clone(), ..after.clone() } == *before
        }),
        Purpose::Pause => before.is_none_or(|before| {
            let is_same =
                before.holder == after.holder && before.beat == after.beat && before.epoch == after.epoch;
            is_same || !before.is_held() && !after.is_held()
        }),
        Purpose::Claim(_) => before.is_none_or(|before| before.epoch < after.epoch),
        // That a look writes at all is another invariant's business.
        Purpose::Look | Purpose::Tend => true,
    };
    if fine {
        return Ok(());
    }
    let said = |record: &Record| format!("{:?} of {:?}", record.epoch, record.holder);
    let before = before.map_or("no record".to_owned(), said);
    Err(BrokenInvariant::new(NAME, format!("{purpose:?} replaced {before} by {}", said(after))))
}

/// Judges a lock that its own session released, last held under `epoch`, given whether anybody leads under that.
pub fn check_freed(purpose: Purpose, epoch: Epoch, led: bool) -> Verdict {
    if led {
        return Err(BrokenInvariant::new(
            NAME,
            format!("{purpose:?} freed the lock of {epoch:?}, which is led"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::{CandidateId, Holder, Incarnation};

    fn record(who: u128, epoch: u64) -> Record {
        let id = CandidateId::new("a").unwrap();
        let holder = Holder { id, incarnation: Some(Incarnation::from_bits(who)) };
        Record { holder: Some(holder), epoch: Epoch::new(epoch), ..Record::default() }
    }

    #[test]
    fn a_late_renewal_or_release_over_a_successor_is_found() {
        let (one, first) = (Incarnation::from_bits(1), Epoch::new(1).unwrap());
        let released = Record { holder: None, ..record(1, 1) };
        assert_eq!(check(Purpose::Renew(one, first), Some(&record(1, 1)), &record(1, 1)), Ok(()));
        assert_eq!(check(Purpose::Release(one, first), Some(&record(1, 1)), &released), Ok(()));
        for before in [Some(&record(2, 2)), Some(&record(1, 2)), Some(&record(2, 1)), None] {
            assert!(check(Purpose::Renew(one, first), before, &record(1, 1)).is_err());
            assert!(check(Purpose::Release(one, first), before, &released).is_err());
        }
    }

    #[test]
    fn a_lock_that_is_freed_under_a_leader_is_found() {
        let (one, first) = (Incarnation::from_bits(1), Epoch::new(1).unwrap());
        assert!(check_freed(Purpose::Release(one, first), first, true).is_err());
        assert_eq!(check_freed(Purpose::Release(one, first), first, false), Ok(()));
    }

    #[test]
    fn a_request_that_changes_more_and_a_claim_that_does_not_rise_are_found() {
        let first = Epoch::new(1).unwrap();
        let later_beat = Record { beat: 9, ..record(1, 1) };
        assert!(check(Purpose::Request(first), Some(&record(1, 1)), &later_beat).is_err());
        assert!(
            check(Purpose::Claim(Incarnation::from_bits(2)), Some(&record(1, 3)), &record(2, 3)).is_err()
        );
    }
}
