//! The flags of `bellwether pause`.

use std::time::Duration;

use bellwether::ElectionName;
use clap::Args as ClapArgs;

use super::{duration, election};

/// Pause an election: whoever leads goes on, and after that nobody is elected until the pause ends.
///
/// The pause ends by itself. To end the present leadership as well, follow with `bellwether step-down`. The record keeps the pause
/// through crashes and restarts; `bellwether unpause` ends it early. Pausing again replaces the pause.
///
/// Every candidate counts the time on its own clock from when it first sees the pause. A leader writes what is left of it with every
/// renewal. Where nobody leads, a candidate that starts later waits for the whole time from its start.
///
/// Candidates of other programs on the same record (client-go on Kubernetes) know no pauses: they may take over.
#[derive(Debug, ClapArgs)]
pub(crate) struct Pause {
    /// The election.
    #[arg(value_name = "ELECTION", value_parser = election)]
    pub(crate) election: Option<ElectionName>,

    /// How long nobody is elected: 10m, for example. At most 24h.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) span: Duration,
}
