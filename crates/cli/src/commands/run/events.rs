//! Subscribers to events: `--events`, one JSON object a line, and `--hook CMD`, run for every event with its JSON on standard input.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use bellwether::Events;
use tokio::task::JoinHandle;

use super::shell::{self, ShellEnd};
use crate::exit::{Exit, Failure};

/// A task that is told of every event, and gets those that wait when everything else is over.
pub(super) struct Subscriber {
    pub(super) what: &'static str,
    pub(super) task: JoinHandle<()>,
    /// How long it may delay the end of the program.
    pub(super) patience: Duration,
}

/// How long a reader that is stuck may hold up the end.
const LAST_EVENTS: Duration = Duration::from_millis(500);

/// Prints events as they come, whole lines in single writes, from a thread that may be stuck without harm: what it
/// does not read is dropped in the middle and counted.
///
/// Where they cannot be written, one warning says so. A reader that has gone does not come back; anything else, such as a
/// full disk, may pass.
pub(super) fn print(mut events: Events, file: &Path) -> Result<Subscriber, Failure> {
    let mut out: Box<dyn Write + Send> = if file.as_os_str() == "-" {
        Box::new(std::io::stdout())
    } else {
        let opened = OpenOptions::new().create(true).append(true).open(file);
        Box::new(opened.map_err(|error| {
            Failure::new(Exit::Usage, format!("cannot write events to {}: {error}", file.display()))
        })?)
    };
    let task = tokio::spawn(async move {
        let mut warned = false;
        while let Some(event) = events.next().await {
            let mut line = event.to_json_line();
            line.push('\n');
            let written = tokio::task::spawn_blocking(move || {
                let result = out.write_all(line.as_bytes()).and_then(|()| out.flush());
                (result, out)
            });
            let Ok((result, back)) = written.await else { return };
            out = back;
            let Err(error) = result else { continue };
            if !std::mem::replace(&mut warned, true) {
                tracing::warn!(%error, "--events cannot be written; the leadership continues without it");
            }
            if error.kind() == ErrorKind::BrokenPipe {
                return;
            }
        }
    });
    Ok(Subscriber { what: "--events", task, patience: LAST_EVENTS })
}

/// How long a hook may take for one event.
const HOOK_MAX: Duration = Duration::from_secs(10);

/// How long, when everything else is over, events that wait are still handed to it.
const LAST_HOOKS: Duration = Duration::from_secs(5);

/// Runs the hook for one event after the other, of those named, or all. A slow hook delays only the next call of itself: what comes
/// meanwhile waits, up to the bound of every subscriber.
///
/// Renewals are many, and a hook is called for them only if it names them.
pub(super) fn run_hook(events: Events, command: String, named: Vec<String>) -> Subscriber {
    let renewals = named.iter().any(|name| name == "renewed");
    let mut events = if renewals { events.with_renewals() } else { events };
    let task = tokio::spawn(async move {
        while let Some(event) = events.next().await {
            let line = event.to_json_line();
            let word = event.what.as_str();
            if !named.is_empty() && !named.iter().any(|name| name == word) {
                continue;
            }
            match shell::run(&command, Some(&line), HOOK_MAX).await {
                ShellEnd::Well => {}
                ShellEnd::Badly(how) => tracing::warn!("the hook for {word} {how}"),
                ShellEnd::Late => {
                    tracing::warn!("the hook for {word} did not end within {HOOK_MAX:?} and was killed");
                }
            }
        }
    });
    Subscriber { what: "the hook", task, patience: LAST_HOOKS }
}
