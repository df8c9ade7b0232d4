//! Epochs where nothing is stored that one could follow.
//!
//! Next to a record, the epoch is one more than the record's. Without one (the first claim ever, a deleted key, a bucket made
//! anew, a record that makes no sense) it is the stream's creation time in microseconds plus its last sequence. Every claim uses up a
//! sequence, and sequences outlive deletions, so within one life of the stream this is above everything issued before; a later
//! life was created later, and no stream takes a million writes a second. No candidate's clock is asked.
//!
//! Candidates of others begin to count at one where they find nothing. Their epoch is followed by the next only if it is one of that
//! size, and so follows one of ours; otherwise ours may have been higher before.

use bellwether_core::{Epoch, StoreError};

use crate::errors::misconfigured;

/// `before` is the epoch in the record that is replaced, where somebody else wrote it; `least` comes after everything that was seen.
pub(crate) fn after(
    before: Option<Epoch>,
    least: Epoch,
    created_micros: u64,
    last_sequence: u64,
) -> Result<Epoch, StoreError> {
    if before.is_some_and(|before| before.get() >= created_micros) {
        return Ok(least);
    }
    let base = created_micros.checked_add(last_sequence).and_then(Epoch::new);
    let base = base.ok_or_else(|| {
        misconfigured(
            "the stream's creation time and sequence are beyond 2^53, where epochs end: use another bucket",
        )
    })?;
    Ok(base.max(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_rise_over_deletions_and_over_lives_of_the_bucket() {
        let (created, mut last) = (1_767_225_600_000_000, 0);
        // A claim where there is nothing, and claims over the record, each of which takes a sequence and adds one.
        let first = after(None, Epoch::ZERO, created, last).unwrap();
        last += 1;
        let mut highest = first;
        for _ in 0..100 {
            highest = highest.next().unwrap();
            last += 1;
        }
        // Deleted behind everybody's back, without a mark.
        let next = after(None, Epoch::ZERO, created, last).unwrap();
        assert!(next > highest, "{next:?} {highest:?}");
        // The bucket deleted and made anew one second later, at sequence 0.
        assert!(after(None, Epoch::ZERO, created + 1_000_000, 0).unwrap() > next);
        let floor = Epoch::new(next.get() + 7).unwrap();
        assert_eq!(after(None, floor, created, last).unwrap(), floor);
        assert!(after(None, Epoch::ZERO, u64::MAX, 1).is_err());
    }

    #[test]
    fn others_are_followed_by_the_next_unless_they_have_begun_to_count_anew() {
        let epoch = |number| Epoch::new(number).unwrap();
        let created = 1_767_225_600_000_000;
        assert_eq!(
            after(Some(epoch(created + 7)), epoch(created + 8), created, 50).unwrap(),
            (epoch(created + 8))
        );
        assert_eq!(after(Some(epoch(5)), epoch(6), created, 50).unwrap(), (epoch(created + 50)));
    }
}
