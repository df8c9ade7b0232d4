//! The fencing token.

use std::fmt;

/// The number of a leadership, greater than that of every earlier leadership of the same election: a fencing token.
///
/// It is below 2^53, so that every JSON parser reads it exactly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(u64);

impl Epoch {
    /// Before the first leadership.
    pub const ZERO: Epoch = Epoch(0);
    /// The last epoch.
    pub const MAX: Epoch = Epoch((1 << 53) - 1);

    /// `None` from 2^53 on.
    pub const fn new(number: u64) -> Option<Epoch> {
        if number <= Epoch::MAX.0 { Some(Epoch(number)) } else { None }
    }

    /// The number, to pass to whatever checks it.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The next epoch; `None` after the last, which only a corrupted store reaches. The caller must fail then, and not repeat a
    /// number.
    pub const fn next(self) -> Option<Epoch> {
        Epoch::new(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_epoch_has_no_next() {
        assert_eq!(Epoch::MAX.next(), None);
        assert_eq!(Epoch::new(1 << 53), None);
        assert_eq!(Epoch::ZERO.next(), Epoch::new(1));
    }

    #[test]
    fn an_epoch_prints_its_number() {
        let epoch = Epoch::new(42).unwrap();
        assert_eq!((epoch.get(), epoch.to_string(), format!("{epoch:?}")), (42, "42".into(), "#42".into()));
    }
}
