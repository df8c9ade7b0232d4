//! Which of a world's elections, and which of its candidates.

use std::fmt;

use bellwether_backend::LockKey;
use bellwether_core::ElectionName;

/// An election of a world, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElectionKey(pub usize);

impl ElectionKey {
    /// What the election is called.
    pub fn name(self) -> ElectionName {
        ElectionName::new(format!("{PREFIX}{}", self.0)).expect("a good name")
    }

    /// The election of that name.
    pub fn of(on: &ElectionName) -> ElectionKey {
        let number = on.as_str().strip_prefix(PREFIX).and_then(|number| number.parse().ok());
        ElectionKey(number.expect("a world's own election"))
    }
}

impl LockKey for ElectionKey {
    fn presence(self) -> ElectionKey {
        self
    }
}

const PREFIX: &str = "sim-";

/// A candidate's place: the process that it runs in, and which of that process's candidates it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    /// The process.
    pub node: usize,
    /// The place among its candidates.
    pub place: usize,
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_election_is_found_by_its_name() {
        for number in [0, 1, 41] {
            assert_eq!(ElectionKey::of(&ElectionKey(number).name()), ElectionKey(number));
        }
    }
}
