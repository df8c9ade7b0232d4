//! One election of a world, as an onlooker knows it: what became of its record or lock, and what is judged of all its candidates
//! together.

use crate::invariants::clones::Clones;
use crate::invariants::epochs::Epochs;
use crate::invariants::exclusion::Losses;
use crate::invariants::owners::Owners;
use crate::invariants::pauses::Pauses;
use crate::invariants::reservations::Reservations;
use crate::options::WorldOptions;
use crate::time::Nanos;

/// An election of a world.
#[derive(Debug)]
pub(crate) struct SimElection {
    /// The lock was released and not taken since.
    pub(crate) is_released: bool,
    /// When the record was released for all, if nobody has claimed it since.
    pub(crate) released_at: Option<Nanos>,
    /// Since when, with no fault about, somebody has to lead, and within how long; `None` once somebody does.
    pub(crate) awaited: Option<Awaited>,
    /// How often the healing phase found a handover under way.
    pub(crate) handovers: u32,
    pub(crate) losses: Losses,
    pub(crate) clones: Clones,
    pub(crate) epochs: Epochs,
    pub(crate) owners: Owners,
    pub(crate) reservations: Reservations,
    pub(crate) pauses: Pauses,
}

/// A leader that has to appear.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    pub(crate) since: Nanos,
    pub(crate) bound: Nanos,
}

impl SimElection {
    /// One that nobody has led.
    pub(crate) fn new(options: &WorldOptions) -> SimElection {
        SimElection {
            is_released: false,
            released_at: None,
            awaited: None,
            handovers: 0,
            losses: Losses::default(),
            clones: Clones::default(),
            epochs: Epochs::default(),
            owners: Owners::default(),
            reservations: Reservations::new(options.ppm.1),
            pauses: Pauses::new(options.ppm, 2 * options.longest_ttl()),
        }
    }
}
