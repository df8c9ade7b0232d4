//! The highest epoch of an election that was ever led under, kept apart from its records.
//!
//! Owns `DIR/.floors/<election>/`, which holds empty files named after epochs; the highest counts. It lies outside the
//! election's own directory, so that clearing that away, records and all, does not start epochs anew. (Who removes all
//! of `DIR` does; so does restoring it from a backup.) A number in a *name* needs no content that could be torn, and raising
//! it is one exclusive creation: nobody can lower it, and a process stopped anywhere leaves it right.
//!
//! # When it is raised
//!
//! After the claim's record is in place and *before* the claim is acknowledged. An epoch that was written and never
//! acknowledged was never led under, so it may be issued again; one that was acknowledged is here. Losers of
//! a claim raise nothing, so epochs have no gaps under contention, and only the winner pays for the disk.
//!
//! [`Floor::enter`] succeeds only if the epoch was not entered before and none above it was. So, in the order of
//! entering, epochs strictly rise, whatever was deleted by hand and wherever a claimant slept in between: one whose
//! record fell into a directory that was cleared meanwhile, and whose epoch others have reached, is told that it lost.
//!
//! The directory is synced before the answer, so that no loss of power takes an epoch back.

use std::path::{Path, PathBuf};

use bellwether_core::{Epoch, Error};
use rustix::fs::CWD;
use rustix::io::Errno;

use crate::directory::Directory;
use crate::errors::meaning;
use crate::numbered::number;
use crate::place::DIR_MODE;

/// Hidden, so that it is no election's name.
pub(crate) const FLOORS: &str = ".floors";

#[derive(Debug)]
pub(crate) struct Floor {
    root: PathBuf,
    all: PathBuf,
    dir: PathBuf,
}

impl Floor {
    /// `root` is the store's directory, `name` that of the election's own.
    pub(crate) fn new(root: &Path, name: &str) -> Floor {
        let all = root.join(FLOORS);
        Floor { root: root.to_owned(), dir: all.join(name), all }
    }

    /// The highest epoch entered; changes nothing.
    pub(crate) fn highest(&self) -> Result<Epoch, Error> {
        match Directory::open(&self.dir).and_then(|dir| entered(&dir)) {
            Ok(epochs) => Ok(epochs.into_iter().max().unwrap_or(Epoch::ZERO)),
            Err(Errno::NOENT) => Ok(Epoch::ZERO),
            Err(errno) => Err(meaning("read", &self.dir, errno)),
        }
    }

    /// Makes its place, so that what can be refused is refused before a claim is written.
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        if self.dir.is_dir() {
            return Ok(());
        }
        for (dir, parent) in [(&self.all, &self.root), (&self.dir, &self.all)] {
            let made = match rustix::fs::mkdirat(CWD, dir, DIR_MODE) {
                Ok(()) => Directory::open(parent).and_then(|parent| parent.sync()),
                Err(Errno::EXIST) => Ok(()),
                Err(errno) => Err(errno),
            };
            made.map_err(|errno| meaning("make the directory", dir, errno))?;
        }
        Ok(())
    }

    /// Raises the floor to an epoch whose claim is written; false if that epoch may not be led under any more.
    pub(crate) fn enter(&self, epoch: Epoch) -> Result<bool, Error> {
        self.prepare()?;
        self.enter_prepared(epoch).map_err(|errno| meaning("write to", &self.dir, errno))
    }

    fn enter_prepared(&self, epoch: Epoch) -> Result<bool, Errno> {
        let dir = Directory::open(&self.dir)?;
        if !dir.create(&epoch.to_string())? {
            return Ok(false);
        }
        let epochs = entered(&dir)?;
        if epochs.iter().any(|other| *other > epoch) {
            return Ok(false);
        }
        dir.sync()?;
        for lower in epochs.into_iter().filter(|other| *other < epoch) {
            // If this fails the next one to enter sweeps it.
            let _ = dir.remove(&lower.to_string());
        }
        Ok(true)
    }
}

fn entered(dir: &Directory) -> Result<Vec<Epoch>, Errno> {
    Ok(dir.names()?.iter().filter_map(|name| number(name).and_then(Epoch::new)).collect())
}
