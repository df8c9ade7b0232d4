//! What a client has been told of its leadership: until when it may believe that it leads, and until when its work may stop.
//!
//! The promise comes before the answer: first the proof is kept for as long as the answer holds, and whoever waits for the end of
//! the client's belief knows of it; then the answer is written.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bellwether_core::{Boot, Epoch};
use bellwether_election::{Over, Reason, Standing, Standings};
use tokio::sync::watch;

use super::{KeptProof, Pace};

pub(crate) struct Told {
    pub(crate) epoch: Epoch,
    standing: Standings,
    pace: Pace,
    /// The latest instant that the client was told.
    until: watch::Sender<Boot>,
    /// `None` where the store does not see the death of this process.
    proof: Mutex<Proof>,
}

enum Proof {
    Needless,
    Kept(Box<dyn KeptProof>),
    /// Nothing more may be promised.
    Gone,
}

/// An answer to a client that leads or has led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It leads until then.
    Leads(Boot),
    /// It does not lead any more, and its work has to be gone by then.
    Ended(Over, Boot),
}

impl Told {
    pub(crate) fn new(
        epoch: Epoch,
        standing: Standings,
        pace: Pace,
        kept: Option<Box<dyn KeptProof>>,
    ) -> Told {
        let proof = Mutex::new(kept.map_or(Proof::Needless, Proof::Kept));
        Told { epoch, standing, pace, until: watch::Sender::new(Boot::default()), proof }
    }

    /// Follows the leadership.
    pub(crate) fn standing(&self) -> Standings {
        self.standing.clone()
    }

    /// Follows the latest instant that the client was told.
    pub(crate) fn until(&self) -> watch::Receiver<Boot> {
        self.until.subscribe()
    }

    /// What a request is answered that was received at `heard`.
    pub(crate) fn answer(&self, heard: Boot, now: Boot) -> Answer {
        let at_most = heard + self.pace.belief;
        match self.standing().now() {
            Standing::Until(deadline) => {
                let until = deadline.min(at_most);
                if now < until && self.promise(until) {
                    Answer::Leads(until)
                } else if now < deadline {
                    // It has to ask again first.
                    Answer::Leads(now)
                } else {
                    Answer::Ended(Over::Expired, now)
                }
            }
            Standing::Over { how, by } => {
                let by = by.min(at_most);
                let promised = now < by && self.promise(by);
                Answer::Ended(how, if promised { by } else { now })
            }
        }
    }

    /// Whether the client may be told this instant. Once it may, it counts as told.
    fn promise(&self, until: Boot) -> bool {
        let proof = self.proof();
        if until <= *self.until.borrow() {
            return true;
        }
        let kept = match &*proof {
            Proof::Needless => true,
            Proof::Kept(kept) => match kept.extend(until + self.pace.margin) {
                Ok(()) => true,
                Err(error) => {
                    tracing::warn!(%error, "the process that keeps the proof of a crash is gone: its client leads no longer");
                    false
                }
            },
            Proof::Gone => false,
        };
        if kept {
            self.until.send_replace(until);
        }
        kept
    }

    /// The client's work is gone: nothing is promised any more, and the proof is not kept.
    pub(crate) fn close(&self) {
        if let Proof::Kept(kept) = std::mem::replace(&mut *self.proof(), Proof::Gone) {
            kept.release();
        }
    }

    fn proof(&self) -> MutexGuard<'_, Proof> {
        self.proof.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a leadership ended, in a word.
pub(crate) fn word(how: Over) -> &'static str {
    match how {
        Over::Released => "released",
        Over::Lost(reason) => reason.as_str(),
        // And whatever else there may be one day.
        _ => Reason::Deadline.as_str(),
    }
}
