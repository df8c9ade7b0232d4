//! What a node says on stdout, with `-o json`: one object a line.
//!
//! A thread of its own writes, so that a reader who is slow or gone delays nothing.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bellwether::{Clock as _, SystemClock, boot_now};
use serde_json::{Value, json};

use crate::args::{Format, Global};
use crate::output;

/// For the last lines at the end.
const LAST_LINES: Duration = Duration::from_millis(500);

pub(super) struct Events {
    writing: Option<(Sender<String>, JoinHandle<()>)>,
    name: String,
}

impl Events {
    pub(super) fn new(global: &Global, name: &str) -> Events {
        let writing = (global.output == Format::Json).then(channel).and_then(|(sender, lines)| {
            let thread = thread::Builder::new().name("events".to_owned()).spawn(move || write(&lines));
            Some((sender, thread.ok()?))
        });
        Events { writing, name: name.to_owned() }
    }

    /// One line: what happened, and more about it.
    pub(super) fn print(&self, event: &str, more: Value) {
        let Some((sender, _)) = &self.writing else { return };
        let mut line = json!({
            "time": SystemClock.wall().to_string(),
            "boot_ns": boot_now().as_nanos(),
            "name": self.name,
            "event": event,
        });
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        // Nobody reads any more: then there is nobody to tell.
        let _ = sender.send(line.to_string());
    }

    /// Waits for a moment until all is written.
    pub(super) async fn end(self) {
        let Some((sender, thread)) = self.writing else { return };
        drop(sender);
        let joined = tokio::task::spawn_blocking(move || thread.join());
        let _ = tokio::time::timeout(LAST_LINES, joined).await;
    }
}

fn write(lines: &Receiver<String>) {
    for line in lines {
        match output::line(&line) {
            Ok(true) => {}
            Ok(false) => return,
            Err(failure) => {
                tracing::warn!("{failure}");
                return;
            }
        }
    }
}
