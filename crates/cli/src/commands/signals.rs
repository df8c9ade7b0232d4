//! Being asked to leave.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Exit, Failure};

/// HUP, INT, QUIT and TERM, whichever comes first.
pub(crate) struct Leave {
    signals: [Signal; 4],
}

impl Leave {
    /// From now on these signals ask to leave instead of ending the process.
    pub(crate) fn new() -> Result<Leave, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::new(Exit::Bug, format!("signals cannot be heard: {error}")))
        };
        Ok(Leave {
            signals: [
                listen(SignalKind::hangup())?,
                listen(SignalKind::interrupt())?,
                listen(SignalKind::quit())?,
                listen(SignalKind::terminate())?,
            ],
        })
    }

    /// Waits for the next one.
    pub(crate) async fn asked(&mut self) {
        let [hangup, interrupt, quit, terminate] = &mut self.signals;
        tokio::select! {
            _ = hangup.recv() => {}
            _ = interrupt.recv() => {}
            _ = quit.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}
