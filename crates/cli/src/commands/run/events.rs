//! `--events`: one JSON object a line for every event.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use std::time::Duration;

use bellwether::Events;

use super::Watcher;
use crate::exit::{Exit, Failure};

/// How long a reader that is stuck may hold up the end.
const LAST_EVENTS: Duration = Duration::from_millis(500);

/// Prints events as they come, whole lines in single writes, from a thread that may be stuck without harm: what it
/// does not read is dropped in the middle and counted.
///
/// Where they cannot be written, one warning says so. A reader that has gone does not come back; anything else, such as a
/// full disk, may pass.
pub(super) fn print(mut events: Events, file: &Path) -> Result<Watcher, Failure> {
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
                tracing::warn!(%error, "--events cannot be written, and the leadership goes on without");
            }
            if error.kind() == ErrorKind::BrokenPipe {
                return;
            }
        }
    });
    Ok(Watcher { what: "--events", task, patience: LAST_EVENTS })
}
