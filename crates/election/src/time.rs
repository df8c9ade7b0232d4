//! Where the driver and its handles get the time from: the system's clock and boot-time timer, or those of a simulation.
//!
//! Nothing else in this crate reads a clock or waits for an instant of it. (Limits that callers give, such as that of
//! `stop_within`, are the runtime's business.)

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use bellwether_backend::Fut;
use bellwether_core::{Boot, Clock, Wall};
use bellwether_deadman::{BootTimer, SystemClock, boot_now};

/// A clock, and a way to wait for it: the system's, unless a simulation hands in its own to
/// [`Store::with_time`](crate::Store::with_time).
///
/// ```
/// use std::sync::Arc;
///
/// use bellwether_backend::{Fut, MemoryStore};
/// use bellwether_core::{Boot, Clock, Wall};
/// use bellwether_election::{Store, Timekeeper};
///
/// /// Time that stands still.
/// struct Frozen;
///
/// impl Clock for Frozen {
///     fn boot(&self) -> Boot {
///         Boot::from_nanos(1)
///     }
///
///     fn wall(&self) -> Wall {
///         Wall::default()
///     }
/// }
///
/// impl Timekeeper for Frozen {
///     fn until(&self, instant: Boot) -> Fut<'_, ()> {
///         if instant <= self.boot() { Box::pin(async {}) } else { Box::pin(std::future::pending()) }
///     }
/// }
///
/// let backend = MemoryStore::default().connect(Arc::new(Frozen));
/// let store = Store::with_time(Arc::new(backend), Arc::new(Frozen));
/// ```
pub trait Timekeeper: Clock {
    /// Waits until [`boot`](Clock::boot) shows `instant` or later: never early, at once for an instant that has passed, never for
    /// [`Boot::FOREVER`]. Dropping the wait leaves nothing behind.
    fn until(&self, instant: Boot) -> Fut<'_, ()>;
}

/// The time that one store and all its elections go by.
#[derive(Clone, Default)]
pub(crate) enum Time {
    /// A variant of its own, so that `is_leader` reads the clock without a detour.
    #[default]
    System,
    Given(Arc<dyn Timekeeper>),
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Time::System) { "System" } else { "Given" })
    }
}

impl Time {
    #[inline]
    pub(crate) fn boot(&self) -> Boot {
        match self {
            Time::System => boot_now(),
            Time::Given(keeper) => keeper.boot(),
        }
    }

    pub(crate) fn wall(&self) -> Wall {
        match self {
            Time::System => SystemClock.wall(),
            Time::Given(keeper) => keeper.wall(),
        }
    }

    /// A timer for one task.
    ///
    /// # Errors
    /// When the process has no room for its first.
    pub(crate) fn timer(&self) -> io::Result<Timer> {
        Ok(match self {
            Time::System => Timer::System(BootTimer::new()?),
            Time::Given(keeper) => Timer::Given(Arc::clone(keeper)),
        })
    }

    /// Waits by the timer, or without one where none could be made.
    pub(crate) async fn until(&self, timer: Option<&mut Timer>, instant: Boot) {
        match timer {
            Some(timer) => timer.until(instant).await,
            // Look at the clock often instead. Late by as much as that, and paid by the margin.
            None => tokio::time::sleep(instant.since(self.boot()).min(Duration::from_millis(5))).await,
        }
    }
}

/// See [`Timekeeper::until`].
pub(crate) enum Timer {
    System(BootTimer),
    Given(Arc<dyn Timekeeper>),
}

impl Timer {
    pub(crate) async fn until(&mut self, instant: Boot) {
        match self {
            Timer::System(timer) => timer.until(instant).await,
            Timer::Given(keeper) => keeper.until(instant).await,
        }
    }
}
