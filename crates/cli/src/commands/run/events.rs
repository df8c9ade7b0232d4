//! `--events`: one JSON object a line for every event.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use bellwether::Events;
use tokio::task::JoinHandle;

use crate::exit::{Exit, Failure};

/// Prints events as they come, whole lines in single writes, from a thread that may be stuck without harm: what it
/// does not read is dropped in the middle and counted.
pub(super) fn print(mut events: Events, file: &Path) -> Result<JoinHandle<()>, Failure> {
    let mut out: Box<dyn Write + Send> = if file.as_os_str() == "-" {
        Box::new(std::io::stdout())
    } else {
        let opened = OpenOptions::new().create(true).append(true).open(file);
        Box::new(opened.map_err(|error| {
            Failure::new(Exit::Usage, format!("cannot write events to {}: {error}", file.display()))
        })?)
    };
    Ok(tokio::spawn(async move {
        while let Some(event) = events.next().await {
            let mut line = event.to_json_line();
            line.push('\n');
            let written = tokio::task::spawn_blocking(move || {
                let result = out.write_all(line.as_bytes()).and_then(|()| out.flush());
                (result.is_ok(), out)
            });
            match written.await {
                Ok((true, back)) => out = back,
                // Nobody reads any more; the leadership goes on.
                _ => return,
            }
        }
    }))
}
