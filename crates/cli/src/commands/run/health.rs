//! `--health-cmd CMD`: only a healthy candidate stands, and an unhealthy leader steps down.

use bellwether::ElectionBuilder;

use super::shell::{self, Ended};
use crate::args::HealthFlags;

/// Lets the command decide. It has as long as the pause between two checks.
pub(super) fn check(builder: ElectionBuilder, command: &str, flags: &HealthFlags) -> ElectionBuilder {
    let (every, failures) = (flags.health_cmd_interval, flags.health_cmd_failures);
    let command = command.to_owned();
    builder.health(every, every, failures, move || {
        let command = command.clone();
        async move {
            let ended = shell::run(&command, None, every).await;
            if ended != Ended::Well {
                tracing::warn!(?ended, "unhealthy");
            }
            ended == Ended::Well
        }
    })
}
