//! `--hook CMD`: run on every event, with the event's JSON on standard input.

use std::time::Duration;

use bellwether::Events;
use tokio::task::JoinHandle;

use super::shell::{self, Ended};

/// How long a hook may take for one event.
const HOOK_MAX: Duration = Duration::from_secs(10);

/// Runs the hook for one event after the other. A slow hook delays only the next call of itself.
pub(super) fn run(mut events: Events, command: String) -> JoinHandle<()> {
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            let line = event.to_json_line();
            let word = event.what.as_str();
            match shell::run(&command, Some(&line), HOOK_MAX).await {
                Ended::Well => {}
                Ended::Badly(how) => tracing::warn!(event = word, %how, "the hook failed"),
                Ended::Late => {
                    tracing::warn!(event = word, "the hook did not end within {HOOK_MAX:?} and was killed")
                }
            }
        }
    })
}
