//! A leader again within the bound, once faults have stopped, and again after that one is killed.
//!
//! The bounds are those that `explain` prints ([`Timeline`](bellwether_core::Timeline)), of the slowest candidate, on
//! the slowest clock; and, as soon as what was on its way has arrived, the shorter one that follows from what each candidate
//! knows (`expect`).

use super::{BrokenInvariant, Verdict};
use crate::time::{Nanos, SECOND};

const NAME: &str = "recovery";

/// Judges the time that it took, or has taken so far.
pub fn check(after: &str, took: Nanos, bound: Nanos) -> Verdict {
    if took <= bound {
        return Ok(());
    }
    let seconds = |nanos: Nanos| nanos as f64 / SECOND as f64;
    let said = format!("no leader {:.3}s after {after}; the bound is {:.3}s", seconds(took), seconds(bound));
    Err(BrokenInvariant::new(NAME, said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_nanosecond_too_long_is_found() {
        assert_eq!(check("faults", 10, 10), Ok(()));
        assert!(check("faults", 11, 10).is_err());
    }
}
