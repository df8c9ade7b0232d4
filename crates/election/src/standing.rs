//! Where a leadership stands, for whatever enforces its deadline from outside the process.

use bellwether_core::Boot;
use tokio::sync::watch;

use crate::leadership::Over;

/// Where a leadership stands.
///
/// ```
/// use bellwether_election::{Boot, Over, Standing};
///
/// /// The instant by which a watchdog has to be fed again, or has to stop the work.
/// fn watchdog_deadline(standing: Standing) -> Boot {
///     match standing {
///         Standing::Until(deadline) => deadline,
///         Standing::Over { by, .. } => by,
///     }
/// }
///
/// let (deadline, by) = (Boot::from_nanos(9), Boot::from_nanos(5));
/// assert_eq!(watchdog_deadline(Standing::Until(deadline)), deadline);
/// assert_eq!(watchdog_deadline(Standing::Over { how: Over::Released, by }), by);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It holds until then, unless renewed.
    Until(Boot),
    /// It is over.
    Over {
        /// How it ended.
        how: Over,
        /// Its work must be gone by then: the deadline that was left, or at once when what protected the work is gone. Later
        /// than before, where the record is renewed while the work stops.
        by: Boot,
    },
}

/// Where a leadership stands, and each change of it.
///
/// It keeps neither the leadership nor the candidate alive. It may skip a change that another one follows at once.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), bellwether_election::Error> {
/// # let backend = bellwether_backend::MemoryStore::default().connect(std::sync::Arc::new(bellwether_deadman::SystemClock));
/// # let election = bellwether_election::Election::builder("reports").backend(backend).id("host-1").start().await?;
/// use bellwether_election::Standing;
///
/// let leadership = election.wait_for_leadership().await?;
/// let mut standings = leadership.standing();
/// assert!(matches!(standings.now(), Standing::Until(_)));
/// election.stop().await?;
/// assert!(matches!(standings.now(), Standing::Over { .. }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Standings(watch::Receiver<Standing>);

impl Standings {
    pub(crate) fn new(changes: watch::Receiver<Standing>) -> Standings {
        Standings(changes)
    }

    /// Where it stands now.
    pub fn now(&mut self) -> Standing {
        *self.0.borrow_and_update()
    }

    /// Waits for a change since [`now`](Self::now) was last asked; for ever when none can come any more.
    ///
    /// That the deadline passes is no change: compare it with the clock.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }
}
