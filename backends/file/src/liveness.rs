//! Proof that an incarnation is dead: the kernel lock that it held is free.
//!
//! Owns the files `<incarnation>.alive` of an election's directory. While an incarnation lives it holds an
//! exclusive `flock(2)` on its own; the kernel drops that lock when the last copy of the descriptor closes,
//! however the process ends, and not a moment earlier: a *stopped* process keeps it. The file is named after the
//! incarnation, so that the end of a replaced leader says nothing about its successor. Leaves to the caller to judge the
//! record ([`crate::FoundValue::settled`]) and to know its own boot id.
//!
//! # Why a free lock proves death
//!
//! The file is made under a temporary name, locked, and only then renamed into place, and the record that
//! names the incarnation is written after that. So whoever finds the file finds it locked or its owner dead; there
//! is no moment between creation and locking that another process could see. Only the owner takes the exclusive lock,
//! once. Everyone else takes a shared one, without waiting: two checkers do not disturb each other, a checker that is
//! stopped while it holds its shared lock keeps nobody from the same proof, and it cannot be in the owner's way, because the
//! owner locked before the name existed.
//!
//! # What proves nothing
//!
//! - **A missing file.** Somebody may have deleted it while its owner lives; the ttl decides.
//! - **Another boot.** After a reboot every lock is free; the machine may also be another one that shares the
//!   directory. Both boot ids must be known and equal.
//! - **A file system that is not known to be local**: see [`crate::is_local`].
//!
//! A duplicate of the descriptor ([`Alive::duplicate`]) keeps the lock, so a process that guards the work of a leader
//! can hold the proof back until that work is over.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use bellwether_backend::Life;
use bellwether_core::{ErrorKind, Incarnation, StoreError};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::directory::{Directory, FileIdentity, is_empty, is_regular};
use crate::errors::{BACKEND, meaning};
use crate::local::directory_is_local;

const SUFFIX: &str = ".alive";

/// This process's own sign of life; dropping it ends it.
#[derive(Debug)]
pub struct Alive {
    dir: PathBuf,
    name: String,
    lock: OwnedFd,
    /// A forked child that drops its copy must not take the file of its living parent away.
    owner: u32,
}

impl Alive {
    /// Takes the lock; to be called before any record names the incarnation.
    pub fn take(dir: &Path, incarnation: Incarnation) -> Result<Alive, StoreError> {
        let failed = |errno| meaning("make a sign of life in", dir, errno);
        let directory = Directory::open(dir).map_err(failed)?;
        let name = file_name(incarnation);
        // Incarnations are drawn at random, so this is a mistake of the caller's; renaming over a file that belongs
        // to a living process would make our end the proof of its death.
        if directory.stat(&name).map_err(failed)?.is_some() {
            let message = format!("{name} is in {} already: an incarnation was used twice", dir.display());
            return Err(StoreError::new(ErrorKind::Bug, BACKEND, message));
        }
        let (temporary, lock) = directory.create_unique().map_err(failed)?;
        // Renamed and not linked: the kernel reports the closing of a file under the name it was opened by, which
        // follows a renaming only, and followers wait for that report.
        let placed = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .and_then(|()| directory.rename(&temporary, &name));
        if let Err(errno) = placed {
            let _ = directory.remove(&temporary);
            return Err(failed(errno));
        }
        Ok(Alive { dir: dir.to_owned(), name, lock, owner: std::process::id() })
    }

    /// Another descriptor of the same lock, closed on exec like the first: the lock lasts until all are closed.
    pub fn duplicate(&self) -> Result<OwnedFd, StoreError> {
        self.lock.try_clone().map_err(|error| {
            let errno = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
            meaning("duplicate the sign of life in", &self.dir, errno)
        })
    }

    /// Whether the file is still where others look for it. If not, a death would go unproven until the ttl: take anew.
    pub fn is_in_place(&self) -> bool {
        let Ok(directory) = Directory::open(&self.dir) else { return false };
        let ours = rustix::fs::fstat(&self.lock).map(|stat| FileIdentity::of(&stat));
        matches!((ours, directory.identity(&self.name)), (Ok(ours), Ok(Some(there))) if ours == there)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        if self.owner == std::process::id()
            && self.is_in_place()
            && let Ok(directory) = Directory::open(&self.dir)
        {
            let _ = directory.remove(&self.name);
        }
    }
}

/// What the lock of `incarnation` tells; unknown, for whatever reason, where it tells nothing.
pub fn life(
    dir: &Path,
    incarnation: Incarnation,
    recorded_boot_id: Option<&str>,
    our_boot_id: Option<&str>,
) -> Life {
    let same_boot = recorded_boot_id.is_some_and(|id| !id.is_empty()) && recorded_boot_id == our_boot_id;
    if !same_boot {
        return Life::Unknown;
    }
    let Ok(directory) = Directory::open(dir) else { return Life::Unknown };
    if !matches!(directory_is_local(&directory), Ok(true)) {
        return Life::Unknown;
    }
    life_of(&directory, &file_name(incarnation))
}

/// Removes the signs of life of the dead, but not of `named`, whom the record names: its death is still to be proven.
///
/// A dead incarnation writes no more records, so none can come to name it after `named` was read.
pub fn sweep_dead(dir: &Path, named: Option<Incarnation>) {
    let Ok(directory) = Directory::open(dir) else { return };
    if !matches!(directory_is_local(&directory), Ok(true)) {
        return;
    }
    for name in directory.names().unwrap_or_default() {
        if let Some(incarnation) = incarnation_of(&name)
            && Some(incarnation) != named
            && life_of(&directory, &name) == Life::Dead
            && is_empty(&directory, &name)
        {
            let _ = directory.remove(&name);
        }
    }
}

/// The incarnation that a file name of ours stands for.
pub(crate) fn incarnation_of(name: &str) -> Option<Incarnation> {
    Incarnation::parse(name.strip_suffix(SUFFIX)?)
}

fn file_name(incarnation: Incarnation) -> String {
    format!("{incarnation}{SUFFIX}")
}

fn life_of(directory: &Directory, name: &str) -> Life {
    let Ok(fd) = directory.open_to_look(name) else { return Life::Unknown };
    // A pipe or a directory in the file's place could be locked by anyone.
    if !rustix::fs::fstat(&fd).is_ok_and(|stat| is_regular(&stat)) {
        return Life::Unknown;
    }
    match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Life::Dead,
        Err(Errno::WOULDBLOCK) => Life::Alive,
        Err(_) => Life::Unknown,
    }
}
