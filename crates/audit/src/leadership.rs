//! A leadership, as far as it was recorded.

use bellwether_core::Boot;

/// Who led: one start of a candidate, on one boot of a machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The candidate's id.
    pub id: String,
    /// Which start of it.
    pub incarnation: String,
    /// The boot that its clock counts from; empty where no line says so, which counts as one machine.
    pub boot_id: String,
}

/// A leadership, by the word of whoever led.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// The election.
    pub election: String,
    /// Who led.
    pub owner: Owner,
    /// Its number; `None` for candidates of other makes, which have none.
    pub epoch: Option<u64>,
    /// Its begin.
    pub from: Boot,
    /// How long its candidate believed in it.
    pub until: Until,
    /// Its last deadline that was recorded.
    pub deadline: Boot,
    /// Whether its leader gave it up.
    pub is_released: bool,
}

/// How long a candidate believed in a leadership. [`Boot::FOREVER`] is an end that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// Certainly until then.
    pub at_least: Boot,
    /// Certainly no longer than that.
    pub at_most: Boot,
}

impl Until {
    /// Exactly until then.
    pub fn exactly(at: Boot) -> Until {
        Until { at_least: at, at_most: at }
    }

    /// Whether that is known.
    pub fn is_exact(self) -> bool {
        self.at_least == self.at_most
    }
}

/// For how long both led, of two leaderships of one clock where `second` began no earlier: certainly, and at most, in nanoseconds.
pub fn overlap(first: &Leadership, second: &Leadership) -> (u64, u64) {
    let nanos =
        |one: Boot, other: Boot| one.min(other).since(second.from).as_nanos().min(u64::MAX.into()) as u64;
    (nanos(first.until.at_least, second.until.at_least), nanos(first.until.at_most, second.until.at_most))
}
