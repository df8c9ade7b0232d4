//! Signals: being asked to leave, and what a command is to hear of.

use std::task::Poll;

#[cfg(target_os = "linux")]
use bellwether_deadman::process::{came_from_kernel, note_origin};
use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

use crate::exit::{Exit, Failure};

/// The signals that we hear instead of being ended by them.
const HEARD: [Signal; 7] =
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2, Signal::WINCH];

/// Whether the terminal sent this signal, to the whole process group in its foreground.
pub(crate) fn is_typed(signal: Signal) -> bool {
    came_from_kernel(signal.as_raw())
}

#[cfg(target_os = "linux")]
fn is_ignored(number: i32) -> bool {
    bellwether_deadman::process::IgnoredSignals::at_start().contains(number)
}

/// Elsewhere no command is run, and nobody has to be told what was typed.
#[cfg(not(target_os = "linux"))]
fn came_from_kernel(_: i32) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn note_origin(_: i32) {}

#[cfg(not(target_os = "linux"))]
fn is_ignored(_: i32) -> bool {
    false
}

/// Hears all of [`HEARD`] but those that we were started to ignore, as by `nohup`.
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// From now on these signals are heard.
    pub(crate) fn new() -> Result<Signals, Failure> {
        let mut heard = Vec::new();
        for signal in HEARD.into_iter().filter(|signal| !is_ignored(signal.as_raw())) {
            let listening = unix::signal(SignalKind::from_raw(signal.as_raw()))
                .map_err(|error| Failure::new(Exit::Bug, format!("cannot listen for signals: {error}")))?;
            note_origin(signal.as_raw());
            heard.push((signal, listening));
        }
        Ok(Signals(heard))
    }

    /// Waits for the next one, whichever it is.
    pub(crate) async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            let mut came = self
                .0
                .iter_mut()
                .filter_map(|(signal, listening)| listening.poll_recv(context).is_ready().then_some(*signal));
            came.next().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Waits for one that asks to leave; the others are ignored.
    pub(crate) async fn leave(&mut self) {
        while matches!(self.next().await, Signal::USR1 | Signal::USR2 | Signal::WINCH) {}
    }
}
