//! One election in its directory: reading the record, replacing it, and what goes with a claim.
//!
//! Owns the order of what a claim does on disk:
//!
//! ```text
//!  1 directory   made if there is none, out of a plain file if there is one   `prepare`
//!  2 sign        the incarnation's kernel lock, before any record names it    `Signs`
//!  3 marker      that the election was held, if there is none                 `Marker`
//!  4 record      compare-and-set                                              `Numbered`
//!  5 sweep       signs of life of the dead
//! ```
//!
//! Renewals, releases and requests are step 4, and for one's own record a look whether the sign is still in place.
//!
//! # What waits for the disk
//!
//! Two syncs a claim, a renewal or a release: the record and its directory. Directories that are made for the first
//! claim of an election cost one each. The sign of life needs none, since no lock outlives the kernel
//! that keeps it, and neither do sweeps. A follower sees a release after its first sync, when the name appears.
//! On a quiet disk a sync is a fraction of a millisecond, on a busy one many times that.
//!
//! Everything here blocks; the register runs it on threads that may. Looking changes nothing.
//!
//! # Epochs
//!
//! The record is the only place that holds the epoch, so there is nothing that could be written without it: a claim follows
//! the epoch of the record that it replaces. An election that was never held begins at one. Where the record of one that was
//! held tells no epoch (it was deleted, or cannot be read) a claim follows the present time in Unix milliseconds, which no
//! count of leaderships catches up with, and every epoch that can still be read. An epoch drawn so goes stale while the
//! claimant sleeps: others may have led, and their records been deleted, since. So a record that replaces none is not
//! written with an old one.
//!
//! # Files of others
//!
//! A file in a record's place that is not a record counts as one that cannot be read, and stays. But a directory with several
//! numbered files, of which none is a record, is somebody else's: it is refused, and nothing is written there.
//!
//! # A record that shows no success
//!
//! A record with [`crate::FoundValue::settled`] false may be a leftover of a write that failed. It loses its boot id on
//! reading: so no proof of death is drawn from it, and neither from what somebody writes over it without being its
//! holder (a request), though that has its place in the sequence again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_backend::{Found, Record, Write, json};
use bellwether_core::{ElectionName, Epoch, StoreError, Wall};

use crate::errors::misconfigured;
use crate::liveness::sweep_dead;
use crate::marker::Marker;
use crate::names::file_name;
use crate::numbered::Numbered;
use crate::prepare::{plain, prepare};
use crate::signs_of_life::{Signs, Whose};
use crate::value::{self, Value, Version};

/// From drawing an epoch by the clock until its record is written, on a machine that is busy.
const DRAWN_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct ElectionDirectory {
    on: ElectionName,
    dir: PathBuf,
    lease: Numbered,
    marker: Marker,
    pub(crate) signs: Signs,
}

impl ElectionDirectory {
    pub(crate) fn new(root: &Path, on: &ElectionName) -> ElectionDirectory {
        let name = file_name(on.as_str());
        let dir = root.join(&name);
        let (lease, marker) = (records(&dir), Marker::new(root, &name));
        ElectionDirectory { on: on.clone(), lease, marker, signs: Signs::default(), dir }
    }

    pub(crate) fn load(&self) -> Result<Found<Version>, StoreError> {
        let Some((read, version)) = look(&self.lease)? else { return Ok(None) };
        if let Some(other) = read.election.filter(|other| other != self.on.as_str()) {
            return Err(misconfigured(format!(
                "{} holds the election {other:?} and not {:?}: it was copied, or their names have the same hash; move it \
                 away or choose another name",
                self.dir.display(),
                self.on
            )));
        }
        Ok(Some((read.record, version)))
    }

    /// `now` is the wall clock's.
    pub(crate) fn epoch(
        &self,
        replaced: Option<&Record>,
        least: Epoch,
        now: Wall,
    ) -> Result<Epoch, StoreError> {
        let last = match replaced.and_then(|record| record.epoch) {
            Some(stored) => stored,
            None => match self.marker.find()? {
                None => self.legible()?,
                Some(issued) => self.legible()?.max(issued).max(by_clock(now)),
            },
        };
        let next = last.next().ok_or_else(|| {
            misconfigured(format!(
                "the epochs of {:?} are used up: its record holds the largest number there is; use another name",
                self.on
            ))
        })?;
        Ok(next.max(least))
    }

    /// The highest epoch of the records that are there and can be read.
    fn legible(&self) -> Result<Epoch, StoreError> {
        match self.lease.values() {
            Ok(values) => {
                let epochs = values.iter().filter_map(|(_, value)| value::read_record(value).record.epoch);
                Ok(epochs.max().unwrap_or(Epoch::ZERO))
            }
            // No directory yet, or a plain file in its place.
            Err(_) if !self.dir.is_dir() => Ok(Epoch::ZERO),
            Err(error) => Err(error),
        }
    }

    /// `boot_id` is this machine's; `now` is the wall clock's.
    pub(crate) fn write(
        &self,
        at: Option<Version>,
        record: &Record,
        boot_id: Option<&str>,
        now: Wall,
    ) -> Write<Version> {
        match self.replace(at, record, boot_id, now) {
            Ok(written) => written,
            // The record that was to be replaced has gone with its directory: a conflict, not a failure.
            Err(_) if at.is_some() && self.has_gone() => Write::Conflict,
            Err(error) => Write::failed(error),
        }
    }

    fn replace(
        &self,
        at: Option<Version>,
        record: &Record,
        boot_id: Option<&str>,
        now: Wall,
    ) -> Result<Write<Version>, StoreError> {
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
            let made = self.marker.make();
            if at.is_none_or(|at| self.lease.stays(at)) {
                let first = made?;
                let oldest = by_clock(now).get().saturating_sub(DRAWN_WITHIN.as_millis() as u64);
                if at.is_none() && !first && record.epoch.is_some_and(|epoch| epoch.get() < oldest) {
                    return Ok(Write::Conflict);
                }
            } else if let Err(error) = made {
                // The record tells that the election was held, as long as it is there.
                tracing::warn!(%error, "epochs would start over if the records of this election were deleted");
            }
        }
        let version = match self.lease.write(at, &json::print(&self.on, &record))? {
            Write::Done(version) => version,
            other => return Ok(other),
        };
        let Whose::Claim(incarnation, epoch) = whose else { return Ok(Write::Done(version)) };
        if let Some(at) = at.filter(|at| self.lease.stays(*at)) {
            let file = self.dir.join(self.lease.name(at.number));
            tracing::warn!(file = %file.display(), "this file is not a record of Bellwether; it is left where it is");
        }
        self.signs.leads(incarnation, epoch);
        sweep_dead(&self.dir, Some(incarnation));
        Ok(Write::Done(version))
    }

    /// The version to write at. One that was read from a plain file becomes that of its copy in the directory, if
    /// the file has not been changed since.
    fn in_directory(&self, version: Version) -> Result<Option<Version>, StoreError> {
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

/// The records of the election in this directory.
pub(crate) fn records(dir: &Path) -> Numbered {
    Numbered::new(dir, "", value::is_record)
}

fn by_clock(now: Wall) -> Epoch {
    let millis = u64::try_from(now.as_unix_nanos() / 1_000_000).unwrap_or(0);
    Epoch::new(millis).unwrap_or(Epoch::MAX)
}

/// The newest record in a directory, or the plain file in its place.
pub(crate) fn look(records: &Numbered) -> Result<Option<(json::Read, Version)>, StoreError> {
    match records.load() {
        Ok(None) => Ok(None),
        Ok(Some(found)) => {
            let mut read = value::read_record(&found.value);
            if read.record.broken {
                refuse_strangers(records)?;
            }
            if !found.settled {
                read.record.boot_id = None;
            }
            Ok(Some((read, found.version)))
        }
        Err(error) => match plain(records.dir()) {
            Some((identity, bytes)) => {
                Ok(Some((value::read_record(&Value::Bytes(bytes)), Version { number: 0, identity })))
            }
            None => Err(error),
        },
    }
}

/// Fails where several numbered files lie and none is a record: that is somebody's data and never was an election. A single
/// one may be what is left of an election's first record.
fn refuse_strangers(records: &Numbered) -> Result<(), StoreError> {
    let values = records.values()?;
    let Some((number, _)) = values.last().filter(|_| values.len() > 1) else { return Ok(()) };
    if values.iter().any(|(_, value)| !value::read_record(value).record.broken) {
        return Ok(());
    }
    Err(misconfigured(format!(
        "{} and the other numbered files there were not written by Bellwether, which needs a directory of its own: choose \
         another directory or another name for the election",
        records.dir().join(records.name(*number)).display()
    )))
}
