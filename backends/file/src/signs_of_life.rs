//! The signs of life of this process's own candidates in one election.
//!
//! Owns which incarnations are ours, their kernel locks ([`Alive`]), and whether a record may promise that its holder's death
//! can be proven: only such a record carries our boot id, and without one nobody looks at a lock.
//!
//! - The lock is taken before the first record that names the incarnation, and kept until [`Signs::end`].
//! - If its file was deleted by hand it is made anew, unless duplicates were given out and the same leadership goes
//!   on: a guard that holds the old lock could not hold the new one back, and a kill would prove too much. Then
//!   records go without the promise until the next leadership.
//! - Where the file system is not local there is no lock and no promise. (The same directory could also be reached
//!   locally, where a lock taken over the network does not show.)
//!
//! A record is *ours* if it names an incarnation that is known here, or a new one and asks nothing of it: a claim never carries a
//! request, and a request that is written into another's record always is one. To take the lock of another's
//! incarnation would make our end the proof of its death.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Mutex;

use bellwether_backend::{Record, lock};
use bellwether_core::{Epoch, ErrorKind, Incarnation, StoreError};

use crate::liveness::Alive;
use crate::local::is_local;

#[derive(Debug, Default)]
pub(crate) struct Signs {
    ours: Mutex<HashMap<Incarnation, Sign>>,
}

#[derive(Debug, Default)]
struct Sign {
    alive: Option<Alive>,
    /// Somebody else has a duplicate, and holds it for the present leadership.
    given_out: bool,
    /// The last leadership that was acknowledged.
    led: Option<Epoch>,
}

/// Whose record is about to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Ours, and it begins a leadership.
    Claim(Incarnation, Epoch),
    /// Ours, and it goes on.
    Kept,
    /// Nobody's, or another's.
    Others,
}

impl Signs {
    /// To be called before the record is written; takes the lock if it names one of ours. Also says whether the record may
    /// promise that the holder's death can be proven.
    pub(crate) fn show(&self, dir: &Path, record: &Record) -> Result<(Whose, bool), StoreError> {
        let (Some(incarnation), Some(epoch)) =
            (record.holder.as_ref().and_then(|holder| holder.incarnation), record.epoch)
        else {
            return Ok((Whose::Others, false));
        };
        let mut ours = lock(&self.ours);
        if !ours.contains_key(&incarnation) && record.request.is_some() {
            return Ok((Whose::Others, false));
        }
        let sign = ours.entry(incarnation).or_default();
        let claim = sign.led != Some(epoch);
        let in_place = |sign: &Sign| sign.alive.as_ref().is_some_and(Alive::is_in_place);
        if !in_place(sign) && (claim || !sign.given_out) && is_local(dir)? {
            match Alive::take(dir, incarnation) {
                Ok(alive) => {
                    sign.alive = Some(alive);
                    sign.given_out = false;
                }
                // The disk that refuses this refuses the record too. That the name is taken is no such reason.
                Err(error) if claim && error.kind() != ErrorKind::Bug => return Err(error),
                // To lead is worth more than the proof.
                Err(error) => tracing::warn!(%error, "a death would go unproven until the ttl"),
            }
        }
        let provable = in_place(sign);
        let whose = if claim { Whose::Claim(incarnation, epoch) } else { Whose::Kept };
        Ok((whose, provable))
    }

    /// The claim was acknowledged.
    pub(crate) fn leads(&self, incarnation: Incarnation, epoch: Epoch) {
        if let Some(sign) = lock(&self.ours).get_mut(&incarnation) {
            sign.led = Some(epoch);
        }
    }

    /// A duplicate of the lock: it lasts until all are closed.
    pub(crate) fn duplicate(&self, incarnation: Incarnation) -> Option<OwnedFd> {
        let mut ours = lock(&self.ours);
        let sign = ours.get_mut(&incarnation)?;
        let duplicate = sign
            .alive
            .as_ref()?
            .duplicate()
            .inspect_err(|error| tracing::warn!(%error, "a guard cannot hold the proof of death back"))
            .ok()?;
        sign.given_out = true;
        Some(duplicate)
    }

    pub(crate) fn end(&self, incarnation: Incarnation) {
        lock(&self.ours).remove(&incarnation);
    }
}
