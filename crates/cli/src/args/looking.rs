//! The flags of the commands that look at a store as a whole.

use std::time::Duration;

use bellwether::ElectionName;
use bellwether_supervise::Containment;
use clap::Args as ClapArgs;

use super::{Timing, duration, election};

/// Shorter, and a screen does nothing but draw itself.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);

/// Check whether elections will go well here: the backend's rights, speed and durability, clocks, containment.
///
/// Takes part in an election of its own, bellwether-doctor-<random>: claims it, renews it 20 times, lets go, and compares
/// the times with the timing settings. Other elections are not touched. Every line says what to do.
///
/// Ends with 0 when nothing is bad, else by meaning: 69 the store is out of reach, too slow or full, 77 permission, 78 the
/// store is not set up for elections.
#[derive(Debug, ClapArgs)]
pub(crate) struct Doctor {
    /// Only look: write nothing to the store, not even the election to measure with, and measure reads alone.
    #[arg(long)]
    pub(crate) no_write: bool,

    #[command(flatten)]
    pub(crate) timing: Timing,

    /// What a command could be contained by, or why nothing; found out before there are threads.
    #[arg(skip)]
    pub(crate) containment: Option<Result<Containment, String>>,
}

/// Show elections, leaders, epochs and renewals on one live screen. Changes nothing.
///
/// On a terminal the screen is drawn anew at every change; q or Ctrl-C leaves. Elsewhere the table is printed once, and
/// again when an election appears or changes its leader, epoch or life; with --interval, at every interval too. With -o
/// json, every such table is one JSON object on a line of its own.
///
/// RENEWED is the time since a renewal was last seen from here; with a + no renewal has been seen yet, and it is the time
/// since the first look. LIFE: alive (renews, or its process is there), record (a record names it, nothing more is known),
/// silent (its ttl has passed without a renewal), dead, released, absent.
#[derive(Debug, ClapArgs)]
pub(crate) struct Top {
    /// The elections; all that the store can list if left out, new ones included as they come.
    #[arg(value_name = "ELECTION", value_parser = election)]
    pub(crate) elections: Vec<ElectionName>,

    /// How often the screen is drawn when nothing changes. Default on a terminal: 1s.
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    pub(crate) interval: Option<Duration>,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    if interval < SHORTEST_INTERVAL {
        return Err(format!("the interval must be at least {SHORTEST_INTERVAL:?}"));
    }
    Ok(interval)
}
