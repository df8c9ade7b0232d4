//! One open directory: listing, looking at, making and removing files in it.
//!
//! Owns the system calls of the numbered records and nothing of their logic. All of one operation goes through
//! one descriptor, so that a directory that is removed or moved away in the middle makes the operation fail
//! instead of splitting it over two directories. Never follows a symbolic link in the directory, and never waits
//! for a pipe that somebody put there. Leaves the meaning of errors to [`crate::errors`].

use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, Result};

use crate::value::{RECORD_MAX_BYTES, Value};

/// Files that are being written start with this; a crash may leave them behind.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// Rights before the user's umask, as any program's new file has them: candidates under several users share a
/// directory by its group.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);

/// Which file a name stands for. The inode alone is not enough, because file systems use the number of a
/// removed file again at once; the time of its last change tells the two apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileIdentity {
    inode: u64,
    modified_ns: i128,
}

impl FileIdentity {
    #[allow(clippy::unnecessary_cast, reason = "the types of these fields differ between platforms")]
    pub(crate) fn of(stat: &Stat) -> FileIdentity {
        let modified_ns = stat.st_mtime as i128 * 1_000_000_000 + stat.st_mtime_nsec as i128;
        FileIdentity { inode: stat.st_ino as u64, modified_ns }
    }

    pub(crate) fn modified_ns(&self) -> i128 {
        self.modified_ns
    }
}

pub(crate) struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

impl Directory {
    pub(crate) fn open(path: &Path) -> Result<Directory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Directory { fd, path: path.to_owned() })
    }

    /// Every name in it. What is there during the whole call is in the answer; what comes or goes may be.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            // A name that is not UTF-8 is none of ours.
            if let Ok(name) = entry?.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Whether the path still leads here: not after the directory was removed or moved away.
    pub(crate) fn is_in_place(&self) -> Result<bool> {
        let here = rustix::fs::fstat(&self.fd)?;
        match rustix::fs::statat(CWD, &self.path, AtFlags::empty()) {
            Ok(there) => Ok(here.st_ino == there.st_ino && here.st_dev == there.st_dev),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    pub(crate) fn stat(&self, name: &str) -> Result<Option<Stat>> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    pub(crate) fn identity(&self, name: &str) -> Result<Option<FileIdentity>> {
        Ok(self.stat(name)?.as_ref().map(FileIdentity::of))
    }

    /// Reads at most [`RECORD_MAX_BYTES`].
    pub(crate) fn read(&self, name: &str) -> Result<Option<(FileIdentity, Value)>> {
        self.read_up_to(name, RECORD_MAX_BYTES)
    }

    /// Reads at most so many bytes.
    pub(crate) fn read_up_to(&self, name: &str, max_bytes: usize) -> Result<Option<(FileIdentity, Value)>> {
        let fd = match rustix::fs::openat(&self.fd, name, reading(), Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            // A symbolic link, a socket, a device without a driver.
            Err(Errno::LOOP | Errno::NXIO | Errno::NODEV) => {
                return Ok(self.identity(name)?.map(|found| (found, Value::NotAFile)));
            }
            Err(errno) => return Err(errno),
        };
        let stat = rustix::fs::fstat(&fd)?;
        let value = if is_regular(&stat) { read_whole(&fd, max_bytes)? } else { Value::NotAFile };
        Ok(Some((FileIdentity::of(&stat), value)))
    }

    /// A complete file on disk, under a name that nobody looks at.
    pub(crate) fn temporary(&self, bytes: &[u8]) -> Result<Temporary<'_>> {
        let (name, fd) = self.create_unique()?;
        let temporary = Temporary { directory: self, name };
        let mut rest = bytes;
        while !rest.is_empty() {
            match rustix::io::write(&fd, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        rustix::fs::fsync(&fd)?;
        Ok(temporary)
    }

    /// A new, empty file open for reading and writing.
    pub(crate) fn create_unique(&self) -> Result<(String, OwnedFd)> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let name = unique_name();
            match rustix::fs::openat(&self.fd, name.as_str(), flags, FILE_MODE) {
                Ok(fd) => return Ok((name, fd)),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    pub(crate) fn open_to_look(&self, name: &str) -> Result<OwnedFd> {
        rustix::fs::openat(&self.fd, name, reading(), Mode::empty())
    }

    pub(crate) fn link(&self, from: &str, to: &str) -> Result<()> {
        rustix::fs::linkat(&self.fd, from, &self.fd, to, AtFlags::empty())
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<()> {
        rustix::fs::renameat(&self.fd, from, &self.fd, to)
    }

    /// Gone afterwards, whoever removed it.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            done => done,
        }
    }

    /// Makes names that were added or removed last through a loss of power.
    pub(crate) fn sync(&self) -> Result<()> {
        rustix::fs::fsync(&self.fd)
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }
}

/// A file that goes away unless it got a name of its own meanwhile.
pub(crate) struct Temporary<'a> {
    pub(crate) directory: &'a Directory,
    pub(crate) name: String,
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // If this fails the file is swept later.
        let _ = self.directory.remove(&self.name);
    }
}

pub(crate) fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Whether it is a file that holds nothing, as signs of life are.
pub(crate) fn is_empty(directory: &Directory, name: &str) -> bool {
    matches!(directory.stat(name), Ok(Some(stat)) if is_regular(&stat) && stat.st_size == 0)
}

/// A name that no other process is likely to draw; creation is exclusive all the same.
pub(crate) fn unique_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(COUNT.fetch_add(1, Ordering::Relaxed));
    hasher.write_u32(std::process::id());
    format!("{TEMPORARY}{:016x}", hasher.finish())
}

fn reading() -> OFlags {
    OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC
}

fn read_whole(fd: &OwnedFd, max_bytes: usize) -> Result<Value> {
    let mut bytes = vec![0; max_bytes + 1];
    let mut length = 0;
    while length < bytes.len() {
        match rustix::io::read(fd, &mut bytes[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    bytes.truncate(length);
    Ok(if length <= max_bytes { Value::Bytes(bytes) } else { Value::Huge })
}
