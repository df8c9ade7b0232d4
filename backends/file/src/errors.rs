//! What the kernel's error numbers mean for an election.
//!
//! Owns the one table from error number to [`ErrorKind`] and to a sentence that says what to do. Judges by
//! number, never by text. Leaves to the callers what is no error for them at all: a name that exists already
//! (somebody else was first), a file that has gone (somebody swept it).

use std::path::Path;

use bellwether_core::{ErrorKind, StoreError};
use rustix::io::Errno;

/// The name of this store in errors.
pub(crate) const BACKEND: &str = "file";

pub(crate) fn misconfigured(sentence: impl Into<String>) -> StoreError {
    StoreError::new(ErrorKind::Misconfigured, BACKEND, sentence)
}

/// `doing` completes "cannot …", and `at` is the file or directory it was done to.
pub(crate) fn meaning(doing: &str, at: &Path, errno: Errno) -> StoreError {
    let at = at.display();
    let (kind, advice) = match errno {
        Errno::ACCESS | Errno::PERM => {
            (ErrorKind::PermissionDenied, "give this user read and write permission there")
        }
        Errno::ROFS => (
            ErrorKind::PermissionDenied,
            "the file system is mounted read-only; remount it writable or choose another directory",
        ),
        Errno::NOSPC => (ErrorKind::Exhausted, "the file system is full; make room"),
        Errno::DQUOT => (ErrorKind::Exhausted, "the disk quota is used up; make room or raise it"),
        Errno::MFILE => (ErrorKind::Exhausted, "this process has too many open files; raise `ulimit -n`"),
        Errno::NFILE => (ErrorKind::Exhausted, "the system has too many open files; raise fs.file-max"),
        Errno::NOMEM => (ErrorKind::Exhausted, "the system is out of memory"),
        Errno::NOENT | Errno::STALE => {
            (ErrorKind::Unavailable, "the directory was removed; it is made again at the next attempt")
        }
        Errno::NOTDIR => (
            ErrorKind::Misconfigured,
            "a file is in the place of a directory; move it away or choose another directory",
        ),
        Errno::NAMETOOLONG => (ErrorKind::Misconfigured, "the path is too long; choose a shorter directory"),
        Errno::LOOP => (ErrorKind::Misconfigured, "the path runs in a circle of symbolic links; mend them"),
        Errno::OPNOTSUPP | Errno::NOSYS => {
            (ErrorKind::Misconfigured, "the file system cannot do this; choose a directory on another one")
        }
        Errno::IO => (ErrorKind::Unavailable, "the disk reports an error; look at the kernel log"),
        Errno::TIMEDOUT => (ErrorKind::TimedOut, "the file system did not answer in time"),
        _ => (ErrorKind::Unavailable, "it is tried again"),
    };
    StoreError::new(kind, BACKEND, format!("cannot {doing} {at}: {advice}"))
        .caused_by(std::io::Error::from(errno))
}

/// As [`meaning`], for `link(2)` of a file of our own: "not permitted" then comes from a file system without
/// hard links (FAT, some network and user-space ones) and not from missing rights.
pub(crate) fn linking(at: &Path, errno: Errno) -> StoreError {
    if errno == Errno::PERM || errno == Errno::MLINK {
        return meaning("make a hard link in", at, Errno::OPNOTSUPP);
    }
    meaning("make a hard link in", at, errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_the_kind_that_says_whether_to_try_again() {
        for (errno, kind) in [
            (Errno::ACCESS, ErrorKind::PermissionDenied),
            (Errno::PERM, ErrorKind::PermissionDenied),
            (Errno::ROFS, ErrorKind::PermissionDenied),
            (Errno::NOSPC, ErrorKind::Exhausted),
            (Errno::DQUOT, ErrorKind::Exhausted),
            (Errno::MFILE, ErrorKind::Exhausted),
            (Errno::NOENT, ErrorKind::Unavailable),
            (Errno::IO, ErrorKind::Unavailable),
            (Errno::NOTDIR, ErrorKind::Misconfigured),
            (Errno::NAMETOOLONG, ErrorKind::Misconfigured),
        ] {
            let error = meaning("write", Path::new("/srv/x"), errno);
            assert_eq!(error.kind(), kind, "{error}");
            assert_eq!(error.backend(), "file");
            assert!(error.to_string().starts_with("file: cannot write /srv/x: "), "{error}");
        }
        assert_eq!(linking(Path::new("/mnt/usb"), Errno::PERM).kind(), ErrorKind::Misconfigured);
        assert_eq!(linking(Path::new("/mnt/usb"), Errno::NOSPC).kind(), ErrorKind::Exhausted);
    }
}
