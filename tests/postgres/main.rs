//! The command on PostgreSQL servers.

mod connecting;
mod followers;
mod step_down;

use std::time::Duration;

/// The lease. A server has been up for as long when a test begins, so no claim has to wait for it.
const TTL: Duration = Duration::from_secs(3);
