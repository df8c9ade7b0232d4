//! Signals: being asked to leave, and what a command is to hear of.

#[cfg(target_os = "linux")]
use bellwether_deadman::process::{came_from_kernel, note_origin};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Exit, Failure};

/// A signal that was sent to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceivedSignal {
    Hangup,
    Interrupt,
    Quit,
    Terminate,
    User1,
    User2,
    Window,
}

impl ReceivedSignal {
    const ALL: [ReceivedSignal; 7] = [
        ReceivedSignal::Hangup,
        ReceivedSignal::Interrupt,
        ReceivedSignal::Quit,
        ReceivedSignal::Terminate,
        ReceivedSignal::User1,
        ReceivedSignal::User2,
        ReceivedSignal::Window,
    ];

    fn kind(self) -> SignalKind {
        match self {
            ReceivedSignal::Hangup => SignalKind::hangup(),
            ReceivedSignal::Interrupt => SignalKind::interrupt(),
            ReceivedSignal::Quit => SignalKind::quit(),
            ReceivedSignal::Terminate => SignalKind::terminate(),
            ReceivedSignal::User1 => SignalKind::user_defined1(),
            ReceivedSignal::User2 => SignalKind::user_defined2(),
            ReceivedSignal::Window => SignalKind::window_change(),
        }
    }

    /// Whether the terminal sent it, to the whole process group in its foreground.
    pub(crate) fn is_typed(self) -> bool {
        came_from_kernel(self.kind().as_raw_value())
    }
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

/// The signals that we hear instead of being ended by them; not those that we were started to ignore, as by `nohup`.
pub(crate) struct Signals {
    heard: Vec<(ReceivedSignal, Signal)>,
}

impl Signals {
    /// From now on these signals are heard.
    pub(crate) fn new() -> Result<Signals, Failure> {
        let mut heard = Vec::new();
        for asked in ReceivedSignal::ALL {
            let number = asked.kind().as_raw_value();
            if is_ignored(number) {
                continue;
            }
            let listening = signal(asked.kind())
                .map_err(|error| Failure::new(Exit::Bug, format!("cannot listen for signals: {error}")))?;
            note_origin(number);
            heard.push((asked, listening));
        }
        Ok(Signals { heard })
    }

    /// Waits for the next one, whichever it is.
    pub(crate) async fn next(&mut self) -> ReceivedSignal {
        std::future::poll_fn(|context| {
            for (asked, signal) in &mut self.heard {
                if signal.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*asked);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }

    /// Waits for one that asks to leave; the others are ignored.
    pub(crate) async fn leave(&mut self) {
        while matches!(
            self.next().await,
            ReceivedSignal::User1 | ReceivedSignal::User2 | ReceivedSignal::Window
        ) {}
    }
}
