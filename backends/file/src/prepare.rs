//! The election's directory: making it, and taking over a plain file that lies in its place.
//!
//! Owns the step from "the path that the user gave" to "a directory that holds records". Assumes nothing about
//! how many processes do the same at once, nor where any of them is stopped or killed. Leaves to the caller to judge
//! the lease that was taken over, as any record by another: it counts as held until its time has passed unchanged.
//!
//! A plain file in the format `{"holder", "renewTime", "leaseDuration"}` becomes record 0:
//!
//! ```text
//!  1 link    P → X, X → S     a second name of the file: S is fixed, `.seed-<name>` beside P, so all find it
//!  2 unlink  P
//!  3 rename  a complete directory holding a copy as `0.json` → P
//!  4 unlink  S
//! ```
//!
//! Each step fails harmlessly if another process was faster: `link` and `unlink` refuse a directory, and `rename` of
//! a directory replaces nothing but an empty one. So no step can touch a directory that is in use already, however
//! late it comes. (Exchanging file and directory in one call could: the second of two processes would swap the first
//! one's directory, perhaps with a leader in it, for its own.) Whoever finds P missing looks for S and
//! goes on at step 3; so a crash after step 2 loses nothing.
//!
//! Any other file is refused and left as it is.

use std::path::Path;

use bellwether_core::{ErrorKind, StoreError};
use rustix::fs::{AtFlags, CWD, FileType, Mode};
use rustix::io::Errno;
use serde::Deserialize;

use crate::directory::{Directory, FileIdentity, Temporary, unique_name};
use crate::errors::{BACKEND, linking, meaning, misconfigured};
use crate::value::Value;
use bellwether_core::duration;

pub(crate) const DIR_MODE: Mode = Mode::from_raw_mode(0o777);
/// Each round ends or was overtaken by another process that got further.
const ROUNDS: usize = 16;

/// What a plain file must say to be taken over.
#[derive(Deserialize)]
struct Seed {
    #[serde(rename = "holder")]
    _holder: String,
    #[serde(rename = "renewTime")]
    _renew_time: String,
    #[serde(rename = "leaseDuration")]
    lease_duration: String,
}

/// Makes the directory if it is missing, out of the plain file in its place if there is one.
pub fn prepare(path: &Path) -> Result<(), StoreError> {
    let failed = |errno| meaning("prepare", path, errno);
    for _ in 0..ROUNDS {
        match kind(path) {
            Ok(Some(FileType::Directory)) => return Ok(()),
            Ok(Some(FileType::RegularFile)) => PathInParent::of(path)?.set_file_aside()?,
            Ok(Some(_)) => return Err(in_the_way(path)),
            Ok(None) => make(path)?,
            Err(errno) => return Err(failed(errno)),
        }
    }
    let message = format!("{} changes faster than it can be prepared; try again", path.display());
    Err(StoreError::new(ErrorKind::Unavailable, BACKEND, message))
}

fn make(path: &Path) -> Result<(), StoreError> {
    let parent = parent_of(path);
    if let Err(error) = std::fs::create_dir_all(parent) {
        let errno = error.raw_os_error().map_or(Errno::NOTDIR, Errno::from_raw_os_error);
        return Err(meaning(
            "make the directory",
            parent,
            if errno == Errno::EXIST { Errno::NOTDIR } else { errno },
        ));
    }
    let place = PathInParent::of(path)?;
    if place.finish_takeover()? {
        return Ok(());
    }
    match rustix::fs::mkdirat(CWD, path, DIR_MODE) {
        // On disk before the first record is, or a loss of power could take the records with it.
        Ok(()) => place.parent.sync().map_err(|errno| meaning("make the directory", path, errno)),
        // Made by another process since we looked, or a symbolic link that leads nowhere.
        Err(Errno::EXIST) if is_link(path) && kind(path) == Ok(None) => Err(in_the_way(path)),
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(meaning("make the directory", path, errno)),
    }
}

/// A path, seen from the directory it is in.
struct PathInParent<'a> {
    path: &'a Path,
    parent: Directory,
    name: String,
    seed: String,
}

impl<'a> PathInParent<'a> {
    fn of(path: &'a Path) -> Result<PathInParent<'a>, StoreError> {
        let parent =
            Directory::open(parent_of(path)).map_err(|errno| meaning("open", parent_of(path), errno))?;
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(misconfigured(format!(
                "{} is no name for a directory; choose another",
                path.display()
            )));
        };
        Ok(PathInParent { path, parent, name: name.to_owned(), seed: format!(".seed-{name}") })
    }

    /// Steps 1 to 4, starting from a file.
    fn set_file_aside(&self) -> Result<(), StoreError> {
        let failed = |errno| meaning("take over", self.path, errno);
        match self.parent.read(&self.name).map_err(failed)? {
            None => return Ok(()),
            Some((_, Value::Bytes(bytes))) if is_seed(&bytes) => {}
            // It may be a directory by now.
            Some(_) if kind(self.path) == Ok(Some(FileType::Directory)) => return Ok(()),
            Some(_) => return Err(in_the_way(self.path)),
        }
        match self.parent.read(&self.seed).map_err(failed)? {
            None => {}
            Some((_, Value::Bytes(bytes))) if is_seed(&bytes) => {}
            Some(_) => {
                return Err(misconfigured(format!(
                    "{} was not written by Bellwether, which needs this name to take over {}; move it away",
                    parent_of(self.path).join(&self.seed).display(),
                    self.path.display()
                )));
            }
        }
        let second = Temporary { directory: &self.parent, name: unique_name() };
        match self.parent.link(&self.name, &second.name) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::PERM) if kind(self.path) == Ok(Some(FileType::Directory)) => return Ok(()),
            Err(errno) => return Err(linking(self.path, errno)),
        }
        self.parent.rename(&second.name, &self.seed).map_err(failed)?;
        drop(second);
        self.parent.sync().map_err(failed)?;
        match rustix::fs::unlinkat(self.parent.fd(), self.name.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            // Somebody else's directory is in place already; which of the two numbers says so depends on the system.
            Err(Errno::ISDIR | Errno::PERM) if kind(self.path) == Ok(Some(FileType::Directory)) => {}
            Err(errno) => return Err(failed(errno)),
        }
        self.finish_takeover().map(drop)
    }

    /// Steps 3 and 4; false if there is nothing to take over.
    fn finish_takeover(&self) -> Result<bool, StoreError> {
        let failed = |errno| meaning("take over", self.path, errno);
        let bytes = match self.parent.read(&self.seed).map_err(failed)? {
            Some((_, Value::Bytes(bytes))) if is_seed(&bytes) => bytes,
            _ => return Ok(false),
        };
        let temporary = parent_of(self.path).join(unique_name());
        rustix::fs::mkdirat(CWD, &temporary, DIR_MODE).map_err(failed)?;
        let moved =
            fill(&temporary, &bytes).and_then(|()| rustix::fs::renameat(CWD, &temporary, CWD, self.path));
        let moved = moved.and_then(|()| self.parent.sync());
        if moved.is_err() {
            let _ = rustix::fs::unlinkat(CWD, temporary.join("0.json"), AtFlags::empty());
            let _ = rustix::fs::unlinkat(CWD, &temporary, AtFlags::REMOVEDIR);
        }
        match moved {
            // Somebody else's directory is there, or a new plain file for the next round.
            Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
            Err(errno) => return Err(failed(errno)),
        }
        if kind(self.path) == Ok(Some(FileType::Directory)) {
            let _ = self.parent.remove(&self.seed);
        }
        Ok(true)
    }
}

/// The plain file in the directory's place, if it is one that would be taken over. Changes nothing.
pub(crate) fn plain(path: &Path) -> Option<(FileIdentity, Vec<u8>)> {
    let place = PathInParent::of(path).ok()?;
    match place.parent.read(&place.name) {
        Ok(Some((identity, Value::Bytes(bytes)))) if is_seed(&bytes) => Some((identity, bytes)),
        _ => None,
    }
}

/// The record as it was: its bytes, on disk, complete before anyone can see the directory.
fn fill(directory: &Path, bytes: &[u8]) -> rustix::io::Result<()> {
    let directory = Directory::open(directory)?;
    let temporary = directory.temporary(bytes)?;
    directory.rename(&temporary.name, "0.json")?;
    directory.sync()
}

fn is_seed(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Seed>(bytes).is_ok_and(|seed| duration::parse(&seed.lease_duration).is_some())
}

/// Follows a symbolic link, so that the directory may be one.
fn kind(path: &Path) -> rustix::io::Result<Option<FileType>> {
    match rustix::fs::statat(CWD, path, AtFlags::empty()) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn is_link(path: &Path) -> bool {
    rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn in_the_way(path: &Path) -> StoreError {
    misconfigured(format!(
        "{} is a file, but Bellwether needs a directory there; move it away or choose another directory",
        path.display()
    ))
}
