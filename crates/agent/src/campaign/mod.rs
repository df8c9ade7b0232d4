//! Clients in other languages: they campaign over HTTP, and one at a time does the work of the leadership.
//!
//! ```text
//!  POST /campaign ──▶ waiting ──▶ leading ──▶ ended ──▶ gone ◀── DELETE /campaign/ID, from anywhere
//!                        ▲ in the order of asking         │
//!                        └── another client, in a leadership and an epoch of its own
//! ```
//!
//! **A client is to this process what a leader is to its store.** It asks, again and again, and each answer holds until its own clock before
//! the request + `valid_ms`. Every `valid_ms` counts from when the server had received that request, so that no clock is compared with
//! another: the client's reading came first. No answer holds for longer than ttl − margin from its request, so the margin covers clocks of
//! different speed as it does between candidates (docs/adr/0020).
//!
//! **One leadership, one client.** A second client gets the next leadership, and so a greater epoch. The leadership is held
//! ([`Leadership::hold`]) until the client says that its work has ended, its process is seen to be dead, or everything that it was
//! told has run out, and the margin too. A connection that closes proves nothing.
//!
//! **A client that stops asking is given up** when what it was told has run out: then the leadership is released.
//!
//! **The proof of a crash comes last.** A store that sees this process's death at once would let another candidate lead while the client
//! still believes. So a [`ProofKeeper`] holds the proof, past the end of this process, until what the client was told has run out.

mod entry;
mod gate;
mod lines;
mod roster;
mod told;
mod turns;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{Boot, Settings};
use bellwether_deadman::{BootTimer, boot_now};
#[cfg(doc)]
use bellwether_election::Leadership;

use crate::limits::LOOK_EVERY;

use entry::{Entry, Place};
pub use gate::ClientGate;
pub(crate) use lines::lines;
pub(crate) use roster::Roster;
pub(crate) use turns::take_turns;

/// What clients may do with the leadership of this process.
pub enum Clients {
    /// Nothing: a command of this process does the work.
    Refused,
    /// Its work. The candidate competes with or without them.
    Welcome(Arc<dyn ProofKeeper>),
    /// Its work. The candidate competes only while a client campaigns; the gate is that of its health check.
    Awaited(Arc<dyn ProofKeeper>, ClientGate),
}

/// Makes processes that keep the proof that this one lives.
pub trait ProofKeeper: Send + Sync {
    /// Keeps these descriptors open, after the end of this process, until that instant or the end of the client's process.
    ///
    /// # Errors
    /// When there is no such process. Then no client may lead.
    fn keep(
        &self,
        proofs: &[OwnedFd],
        client: Option<BorrowedFd<'_>>,
        until: Boot,
    ) -> io::Result<Box<dyn KeptProof>>;
}

/// A proof that is kept. Dropping it is as the end of this process: the proof is kept until the instant that was named last.
pub trait KeptProof: Send {
    /// Keeps it until then.
    ///
    /// # Errors
    /// When it is not kept any more.
    fn extend(&self, until: Boot) -> io::Result<()>;

    /// The client's work is gone: keeps it no longer.
    fn release(self: Box<Self>);
}

/// How long answers hold, and how often clients ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// No answer holds for longer, from when its request was received.
    pub(crate) belief: Duration,
    /// What is left after that, before others may lead.
    pub(crate) margin: Duration,
    /// An answer ends after this time, and the client asks again.
    pub(crate) again: Duration,
}

impl Pace {
    pub(crate) fn of(settings: &Settings) -> Pace {
        let timing = settings.timing();
        let belief = timing.belief(timing.ttl());
        // Two answers may be lost before a client stops believing.
        Pace { belief, margin: timing.margin(), again: timing.renew().min(belief / 3) }
    }
}

/// Waits until then. It may return earlier.
async fn wake(timer: Option<&mut BootTimer>, until: Boot) {
    match timer {
        Some(timer) => timer.until(until).await,
        // Out of descriptors: look at the clock now and then instead.
        None => tokio::time::sleep(until.since(boot_now()).min(LOOK_EVERY)).await,
    }
}
