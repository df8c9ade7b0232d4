//! The rule that every resource applies: a write is admitted unless a later epoch has written.
//!
//! Pure, and in this one place. Assumes that the caller makes the check and the write one: it writes only over the very version in which it
//! found what it asks about.

use crate::{Failure, FenceError, Fenced, Stamp};

/// What was found in the place of the writer's stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing was ever written, or nothing is left of it.
    Nothing,
    /// A value without a stamp: somebody wrote it who knows nothing of epochs.
    Unstamped,
    /// A value of this leader, or what it left where it removed the value.
    By(Stamp),
    /// A stamp that cannot be read, and what is wrong with it. It may be that of any epoch.
    Unreadable(String),
}

/// Whether this writer may write over that.
///
/// ```
/// use bellwether_core::{ElectionName, Epoch};
/// use bellwether_fence::{Found, Stamp, admit};
///
/// let by = |epoch| Stamp::new(ElectionName::new("reports").unwrap(), Epoch::new(epoch).unwrap());
/// assert!(admit(&Found::By(by(7)), &by(7)).is_ok());
/// assert!(admit(&Found::By(by(8)), &by(7)).is_err());
/// ```
///
/// # Errors
/// When it may not.
pub fn admit(found: &Found, writer: &Stamp) -> Result<(), FenceError> {
    match found {
        Found::Nothing => Ok(()),
        Found::By(stamp) if stamp.election != writer.election => {
            let (mine, theirs) = (writer.election.clone(), stamp.election.clone());
            Err(Failure::OtherElection { mine, theirs }.into())
        }
        // An equal epoch is the same leader, which may write as often as it likes.
        Found::By(stamp) if stamp.epoch <= writer.epoch => Ok(()),
        Found::By(stamp) => Err(Fenced { mine: writer.epoch, latest: stamp.epoch }.into()),
        Found::Unstamped => Err(Failure::Unstamped.into()),
        Found::Unreadable(what) => Err(Failure::Unreadable(what.clone()).into()),
    }
}

/// The same for a writer that takes over a value without a stamp.
///
/// # Errors
/// When it may not.
pub fn admit_adopting(found: &Found, writer: &Stamp) -> Result<(), FenceError> {
    match found {
        Found::Unstamped => Ok(()),
        found => admit(found, writer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::{ElectionName, Epoch};

    fn by(election: &str, epoch: Epoch) -> Stamp {
        Stamp::new(ElectionName::new(election).unwrap(), epoch)
    }

    #[derive(Debug, PartialEq)]
    enum Verdict {
        Admitted,
        Fenced(Epoch, Epoch),
        OtherElection,
        Unstamped,
        Unreadable,
    }

    fn verdict(judged: Result<(), FenceError>) -> Verdict {
        match judged {
            Ok(()) => Verdict::Admitted,
            Err(FenceError::Fenced(Fenced { mine, latest })) => Verdict::Fenced(mine, latest),
            Err(FenceError::Failed(Failure::OtherElection { .. })) => Verdict::OtherElection,
            Err(FenceError::Failed(Failure::Unstamped)) => Verdict::Unstamped,
            Err(FenceError::Failed(Failure::Unreadable(_))) => Verdict::Unreadable,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_write_is_admitted_unless_a_later_epoch_has_written() {
        let number = |number| Epoch::new(number).unwrap();
        let (one, seven, eight) = (number(1), number(7), number(8));
        let before_last = number(Epoch::MAX.get() - 1);
        for (found, epoch, expected) in [
            (Found::Nothing, one, Verdict::Admitted),
            (Found::Nothing, Epoch::MAX, Verdict::Admitted),
            (Found::By(by("a", seven)), eight, Verdict::Admitted),
            (Found::By(by("a", seven)), seven, Verdict::Admitted),
            (Found::By(by("a", eight)), seven, Verdict::Fenced(seven, eight)),
            (Found::By(by("a", Epoch::MAX)), before_last, Verdict::Fenced(before_last, Epoch::MAX)),
            (Found::By(by("a", before_last)), Epoch::MAX, Verdict::Admitted),
            (Found::By(by("a", Epoch::MAX)), Epoch::MAX, Verdict::Admitted),
            (Found::By(by("b", one)), eight, Verdict::OtherElection),
            (Found::By(by("b", seven)), seven, Verdict::OtherElection),
            (Found::By(by("b", eight)), one, Verdict::OtherElection),
            (Found::Unstamped, eight, Verdict::Unstamped),
            (Found::Unreadable("x".to_owned()), Epoch::MAX, Verdict::Unreadable),
        ] {
            let writer = by("a", epoch);
            assert_eq!(verdict(admit(&found, &writer)), expected, "{found:?}, {writer}");
            let adopting = if expected == Verdict::Unstamped { Verdict::Admitted } else { expected };
            assert_eq!(verdict(admit_adopting(&found, &writer)), adopting, "adopting {found:?}, {writer}");
        }
    }
}
