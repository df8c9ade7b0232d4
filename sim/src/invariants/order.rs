//! SimWork ended before release: nothing that lets the next one in leaves a candidate whose work goes on.

use bellwether_core::Epoch;

use super::{BrokenInvariant, Verdict};

const NAME: &str = "work before release";

/// Judges a release that leaves, given the leadership whose work has not ended, if there is one.
pub fn check(released: Epoch, working: Option<Epoch>) -> Verdict {
    if working == Some(released) {
        return Err(BrokenInvariant::new(NAME, format!("{released:?} is released while its work goes on")));
    }
    Ok(())
}

/// Judges a lock that is released, given whether its process is still present: whoever finds the lock free must find
/// nobody in its way.
pub fn presence_first(present: bool) -> Verdict {
    if present {
        return Err(BrokenInvariant::new(NAME, "the lock is released before the presence"));
    }
    Ok(())
}

/// Judges a renewal that asks for presence, given whether the process has left since its claim.
pub fn not_present_again(left: bool, renewed: Epoch) -> Verdict {
    if left {
        return Err(BrokenInvariant::new(
            NAME,
            format!("{renewed:?} is made present again after its release"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_with_the_work_going_on_is_found() {
        let (one, two) = (Epoch::new(1).unwrap(), Epoch::new(2));
        assert!(check(one, Some(one)).is_err());
        assert_eq!(check(one, two), Ok(()));
        assert_eq!(check(one, None), Ok(()));
        assert!(presence_first(true).is_err() && presence_first(false).is_ok());
        assert!(not_present_again(true, one).is_err() && not_present_again(false, one).is_ok());
    }
}
