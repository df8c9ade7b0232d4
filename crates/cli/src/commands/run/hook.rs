//! `--hook CMD`: run on every event, with the event's JSON on standard input.

use std::time::Duration;

use bellwether::Events;

use super::Watcher;
use super::shell::{self, Ended};

/// How long a hook may take for one event.
const HOOK_MAX: Duration = Duration::from_secs(10);

/// How long, when everything else is over, events that wait are still handed to it.
const LAST_HOOKS: Duration = Duration::from_secs(5);

/// Runs the hook for one event after the other, of those named, or all. A slow hook delays only the next call of itself: what comes
/// meanwhile waits, up to the bound of every subscriber.
pub(super) fn run(mut events: Events, command: String, named: Vec<String>) -> Watcher {
    let task = tokio::spawn(async move {
        while let Some(event) = events.next().await {
            let line = event.to_json_line();
            let word = event.what.as_str();
            if !named.is_empty() && !named.iter().any(|name| name == word) {
                continue;
            }
            match shell::run(&command, Some(&line), HOOK_MAX).await {
                Ended::Well => {}
                Ended::Badly(how) => tracing::warn!("the hook for {word} {how}"),
                Ended::Late => {
                    tracing::warn!("the hook for {word} did not end within {HOOK_MAX:?} and was killed");
                }
            }
        }
    });
    Watcher { what: "the hook", task, patience: LAST_HOOKS }
}
