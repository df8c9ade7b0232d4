//! One election in its directory: reading the record, replacing it, and what goes with a claim.
//!
//! Owns the order of what a claim does on disk:
//!
//! ```text
//!  1 directory   made if there is none, out of a plain file if there is one   `prepare`
//!  2 sign        the incarnation's kernel lock, before any record names it    `Signs`
//!  3 record      compare-and-set                                              `Numbered`
//!  4 floor       the epoch, on disk, before the claim is acknowledged         `Floor`
//!  5 sweep       signs of life of the dead
//! ```
//!
//! Renewals, releases and requests are step 3, and for one's own record a look whether the sign is still in place.
//!
//! # What waits for the disk
//!
//! Three syncs a claim: the record, its directory, the floor. Two a renewal or release. Directories that are made
//! for the first claim of an election cost one each. The sign of life needs none, since no lock outlives the kernel
//! that keeps it, and neither do sweeps. A follower sees a release after its first sync, when the name appears.
//! On a quiet disk a sync is a fraction of a millisecond, on a busy one many times that.
//!
//! Everything here blocks; the register runs it on threads that may. Looking changes nothing.
//!
//! # A record that shows no success
//!
//! A record with [`crate::Found::settled`] false may be a leftover of a write that failed. It loses its boot id on
//! reading: so no proof of death is drawn from it, and neither from what somebody writes over it without being its
//! holder (a request), though that has its place in the sequence again.

use std::path::{Path, PathBuf};

use bellwether_backend::{Found, Record, Write};
use bellwether_core::{ElectionName, Epoch, Error, ErrorKind};

use crate::errors::BACKEND;
use crate::floor::Floor;
use crate::liveness::sweep_dead;
use crate::names::file_name;
use crate::numbered::Numbered;
use crate::place::{plain, prepare};
use crate::signs::{Signs, Whose};
use crate::value::{Value, Version};
use crate::{record, value};

#[derive(Debug)]
pub(crate) struct Cell {
    on: ElectionName,
    dir: PathBuf,
    lease: Numbered,
    floor: Floor,
    pub(crate) signs: Signs,
}

impl Cell {
    pub(crate) fn new(root: &Path, on: &ElectionName) -> Cell {
        let name = file_name(on.as_str());
        let dir = root.join(&name);
        Cell {
            on: on.clone(),
            lease: Numbered::new(&dir, ""),
            floor: Floor::new(root, &name),
            signs: Signs::default(),
            dir,
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn load(&self) -> Result<Found<Version>, Error> {
        let Some((read, version)) = look(&self.lease)? else { return Ok(None) };
        if let Some(other) = read.election.filter(|other| other != self.on.as_str()) {
            let message = format!(
                "{} holds the election {other:?} and not {:?}: it was copied, or their names have the same hash; move it \
                 away or choose another name",
                self.dir.display(),
                self.on
            );
            return Err(Error::new(ErrorKind::Misconfigured, BACKEND, message));
        }
        Ok(Some((read.record, version)))
    }

    pub(crate) fn epoch(&self, replaced: Option<&Record>, least: Epoch) -> Result<Epoch, Error> {
        let stored = replaced.and_then(|record| record.epoch).unwrap_or(Epoch::ZERO);
        let next = self.floor.highest()?.max(stored).next().ok_or_else(|| {
            let message = format!(
                "the epochs of {:?} are used up: its floor is the largest number there is; use another name",
                self.on
            );
            Error::new(ErrorKind::Misconfigured, BACKEND, message)
        })?;
        Ok(next.max(least))
    }

    /// `boot_id` is this machine's.
    pub(crate) fn write(
        &self,
        at: Option<Version>,
        record: &Record,
        boot_id: Option<&str>,
    ) -> Write<Version> {
        match self.replace(at, record, boot_id) {
            Ok(written) => written,
            // The record that was to be replaced has gone with its directory: a conflict, not a failure.
            Err(_) if at.is_some() && self.has_gone() => Write::Conflict,
            Err(error) => not_written(error),
        }
    }

    fn replace(
        &self,
        at: Option<Version>,
        record: &Record,
        boot_id: Option<&str>,
    ) -> Result<Write<Version>, Error> {
        let at = match at {
            Some(version) => match self.in_directory(version)? {
                Some(version) => Some(version),
                None => return Ok(Write::Conflict),
            },
            None => {
                prepare(&self.dir)?;
                None
            }
        };
        let (whose, provable) = self.signs.show(&self.dir, record)?;
        let record = match whose {
            Whose::Others => record.clone(),
            _ => {
                let boot_id = boot_id.filter(|_| provable).map(ToOwned::to_owned);
                Record { boot_id, ..record.clone() }
            }
        };
        if let Whose::Claim(..) = whose {
            self.floor.prepare()?;
        }
        let bytes = record::print(&self.on, &record).map_err(|error| {
            Error::new(ErrorKind::Bug, BACKEND, "a record could not be written as JSON").caused_by(error)
        })?;
        let version = match self.lease.write(at, &bytes)? {
            value::Write::Done(version) => version,
            value::Write::Conflict => return Ok(Write::Conflict),
            value::Write::Unknown(error) => return Ok(Write::Unknown(error)),
        };
        let Whose::Claim(incarnation, epoch) = whose else { return Ok(Write::Done(version)) };
        match self.floor.enter(epoch) {
            Ok(true) => {}
            // Records were deleted while we slept, and others have led since. The record names us and nobody acts on it;
            // whoever looks next, we included, replaces it under an epoch above the floor.
            Ok(false) => return Ok(Write::Conflict),
            Err(error) => return Ok(Write::Unknown(error)),
        }
        self.signs.leads(incarnation, epoch);
        sweep_dead(&self.dir, Some(incarnation));
        Ok(Write::Done(version))
    }

    /// The version to write at. One that was read from a plain file becomes that of its copy in the directory, if
    /// the file has not been changed since.
    fn in_directory(&self, version: Version) -> Result<Option<Version>, Error> {
        if version.number != 0 {
            return Ok(Some(version));
        }
        let Some((identity, bytes)) = plain(&self.dir) else { return Ok(Some(version)) };
        if identity != version.identity {
            return Ok(None);
        }
        prepare(&self.dir)?;
        let found = self.lease.load()?;
        let same = found.filter(|found| found.version.number == 0 && found.value == Value::Bytes(bytes));
        Ok(same.map(|found| found.version))
    }

    fn has_gone(&self) -> bool {
        matches!(self.dir.symlink_metadata(), Err(error) if error.kind() == std::io::ErrorKind::NotFound)
    }
}

/// The newest record in a directory, or the plain file in its place.
pub(crate) fn look(records: &Numbered) -> Result<Option<(record::Read, Version)>, Error> {
    match records.load() {
        Ok(None) => Ok(None),
        Ok(Some(found)) => {
            let mut read = record::read(&found.value);
            if !found.settled {
                read.record.boot_id = None;
            }
            Ok(Some((read, found.version)))
        }
        Err(error) => match plain(records.dir()) {
            Some((identity, bytes)) => {
                Ok(Some((record::read(&Value::Bytes(bytes)), Version { number: 0, identity })))
            }
            None => Err(error),
        },
    }
}

/// Certainly not written: whether to try again depends on the reason.
pub(crate) fn not_written<V>(error: Error) -> Write<V> {
    if error.is_retryable() { Write::Unknown(error) } else { Write::Refused(error) }
}
