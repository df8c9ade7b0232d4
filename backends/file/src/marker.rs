//! Whether an election was ever held in a store, which its own directory cannot tell once somebody has removed it.
//!
//! Owns `DIR/.floors/<election>/`: a directory that is made before the election's first record, and never changed after that. A
//! candidate that may not make it is refused before it has written anything. Every claim makes it where it is missing (the store was
//! copied without it, say), but none on an election that has a record depends on it. (Earlier versions kept the highest epoch there, as
//! the name of an empty file. Such a name still counts.)

use std::path::{Path, PathBuf};

use bellwether_core::{Epoch, StoreError};
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

use crate::directory::{Directory, is_empty};
use crate::errors::meaning;
use crate::numbered::number;
use crate::prepare::DIR_MODE;

/// Hidden, so that it is no election's name.
pub(crate) const MARKERS: &str = ".floors";

#[derive(Debug)]
pub(crate) struct Marker {
    root: PathBuf,
    all: PathBuf,
    dir: PathBuf,
}

impl Marker {
    /// `root` is the store's directory, `name` that of the election's own.
    pub(crate) fn new(root: &Path, name: &str) -> Marker {
        let all = root.join(MARKERS);
        Marker { root: root.to_owned(), dir: all.join(name), all }
    }

    /// `None` if the election was never held here; else an epoch that was certainly issued, or zero.
    pub(crate) fn find(&self) -> Result<Option<Epoch>, StoreError> {
        match Directory::open(&self.dir).and_then(|dir| dir.names()) {
            Ok(names) => {
                let epochs = names.iter().filter_map(|name| number(name).and_then(Epoch::new));
                Ok(Some(epochs.max().unwrap_or(Epoch::ZERO)))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(meaning("read", &self.dir, errno)),
        }
    }

    /// Makes it; false if it was there.
    pub(crate) fn make(&self) -> Result<bool, StoreError> {
        let mut made = false;
        for (dir, parent) in [(&self.all, &self.root), (&self.dir, &self.all)] {
            made = match rustix::fs::mkdirat(CWD, dir, DIR_MODE) {
                Ok(()) => Directory::open(parent).and_then(|parent| parent.sync()).map(|()| true),
                Err(Errno::EXIST) => Ok(false),
                Err(errno) => Err(errno),
            }
            .map_err(|errno| meaning("make the directory", dir, errno))?;
        }
        Ok(made)
    }

    /// Takes it away, unless somebody has put something of their own into it.
    pub(crate) fn remove(&self) -> Result<(), Errno> {
        let dir = Directory::open(&self.dir)?;
        for name in dir.names()? {
            if number(&name).is_some() && is_empty(&dir, &name) {
                dir.remove(&name)?;
            }
        }
        rustix::fs::unlinkat(CWD, &self.dir, AtFlags::REMOVEDIR)
    }
}
