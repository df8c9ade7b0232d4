//! The flags of the commands that look at a store as a whole.

use std::time::Duration;

use bellwether::ElectionName;
use bellwether_supervise::Containment;
use clap::Args as ClapArgs;

use super::{TimingFlags, election, interval_from};

/// At a shorter interval, a screen does nothing but draw itself.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);

/// Check whether elections will work here: the store's permissions, speed and durability, clocks, containment.
///
/// Holds an election of its own, bellwether-doctor-<random>: claims it, renews it 20 times, releases it, and compares the
/// times with the timing settings. Other elections are not touched. Every warning says what to do.
///
/// With ELECTION, it writes nothing, and checks what a candidate of that election needs: where permissions are granted for each
/// election by name, only this can tell whether they are enough.
///
/// Exits with 0 if nothing is bad; else with 69 (the store is unreachable, too slow or full), 77 (permission denied) or 78
/// (the store is not set up for elections).
#[derive(Debug, ClapArgs)]
pub(crate) struct Doctor {
    /// Check the permissions for this election, and write nothing.
    #[arg(value_name = "ELECTION", value_parser = election)]
    pub(crate) election: Option<ElectionName>,

    /// Write nothing to the store: hold no election, and measure reads only.
    #[arg(long)]
    pub(crate) no_write: bool,

    #[command(flatten)]
    pub(crate) timing: TimingFlags,

    /// What a command could be contained by, or why nothing; found out before there are threads.
    #[arg(skip)]
    pub(crate) containment: Option<Result<Containment, String>>,
}

/// Show elections, leaders, epochs and renewals on one live screen. Changes nothing.
///
/// On a terminal, the screen is redrawn at every change; q or Ctrl-C quits. Elsewhere, the table is printed once, and again
/// when an election appears or its leader, epoch or life changes, and at every --interval. With -o json, each table is one
/// line of JSON.
///
/// RENEWED is the time since a renewal was last seen; with a +, none has been seen yet, and it is the time since the start.
/// LIFE: alive (renews, or its process is there), record (a record names it, nothing more is known),
/// silent (its ttl has passed without a renewal), dead, released, absent.
#[derive(Debug, ClapArgs)]
pub(crate) struct Top {
    /// The elections. Default: all that the store can list, including new ones as they appear.
    #[arg(value_name = "ELECTION", value_parser = election)]
    pub(crate) elections: Vec<ElectionName>,

    /// How often the screen is redrawn when nothing changes. Default on a terminal: 1s.
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    pub(crate) interval: Option<Duration>,
}

fn interval(text: &str) -> Result<Duration, String> {
    interval_from(SHORTEST_INTERVAL, text)
}
