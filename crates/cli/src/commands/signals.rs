//! Signals: being asked to leave, and what a command is to hear of.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Exit, Failure};

/// A signal that was sent to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Hangup,
    Interrupt,
    Quit,
    Terminate,
    User1,
    User2,
    Window,
}

/// The signals that we hear instead of being ended by them.
pub(crate) struct Signals {
    heard: [(Asked, Signal); 7],
}

impl Signals {
    /// From now on these signals are heard.
    pub(crate) fn new() -> Result<Signals, Failure> {
        let listen = |asked, kind| match signal(kind) {
            Ok(signal) => Ok((asked, signal)),
            Err(error) => Err(Failure::new(Exit::Bug, format!("signals cannot be heard: {error}"))),
        };
        Ok(Signals {
            heard: [
                listen(Asked::Hangup, SignalKind::hangup())?,
                listen(Asked::Interrupt, SignalKind::interrupt())?,
                listen(Asked::Quit, SignalKind::quit())?,
                listen(Asked::Terminate, SignalKind::terminate())?,
                listen(Asked::User1, SignalKind::user_defined1())?,
                listen(Asked::User2, SignalKind::user_defined2())?,
                listen(Asked::Window, SignalKind::window_change())?,
            ],
        })
    }

    /// Waits for the next one, whichever it is.
    pub(crate) async fn next(&mut self) -> Asked {
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
        while matches!(self.next().await, Asked::User1 | Asked::User2 | Asked::Window) {}
    }
}
