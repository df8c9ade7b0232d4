//! A Unix socket's file: whose is it, and may it be removed?
//!
//! A socket's file outlives its process, and the next one cannot listen before it is gone. Nothing in such a file says who made it, and
//! that nobody answers on it does not make it ours. So beside `PATH` there is `PATH.lock`, which is locked for as long as somebody
//! serves, and says which file the one who serves has made: its device, its inode and the instant at which it was made. A file is removed
//! only if it is a socket, the lock is free, and it is exactly the one that the lock names. Everything else is left alone,
//! and the error says so. The kernel releases the lock with the process, however that ends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::AgentError;

/// The first line of a lock file: what does not begin like this is not ours.
const TITLE: &str = "bellwether --http socket";

/// The files of a socket that is being served. The socket's is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: String,
    /// Locked.
    _lock: File,
}

/// Listens on a socket of this path.
pub(crate) fn bind(path: &Path) -> Result<(UnixListener, SocketFile), AgentError> {
    let failed =
        |what: &str, error: io::Error| AgentError::new(format!("{what} {}: {error}", path.display()));
    let mut lock = lock_beside(path)?;
    if let Ok(about) = fs::symlink_metadata(path) {
        let is_ours = about.file_type().is_socket()
            && made_by_one_of_us(&mut lock).as_deref() == Some(&*identity(&about));
        if !is_ours {
            return Err(AgentError::new(format!(
                "{} is there already, and bellwether did not make it: remove it, or choose another path",
                path.display()
            )));
        }
        fs::remove_file(path).map_err(|error| failed("cannot remove the old socket", error))?;
    }
    let listener = UnixListener::bind(path).map_err(|error| failed("cannot listen on", error))?;
    let about = fs::symlink_metadata(path).map_err(|error| failed("cannot look at", error))?;
    let identity = identity(&about);
    let written = lock
        .rewind()
        .and_then(|()| lock.set_len(0))
        .and_then(|()| lock.write_all(format!("{TITLE}\n{identity}\n").as_bytes()));
    let file = SocketFile { path: path.to_owned(), identity, _lock: lock };
    written.map_err(|error| failed("cannot write the lock beside", error))?;
    Ok((listener, file))
}

/// Which file it is.
fn identity(about: &fs::Metadata) -> String {
    format!("{} {} {}.{:09}", about.dev(), about.ino(), about.mtime(), about.mtime_nsec())
}

/// The identity of the socket that the last holder of this lock made.
fn made_by_one_of_us(lock: &mut File) -> Option<String> {
    let mut text = String::new();
    lock.take(1_024).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    (lines.next() == Some(TITLE)).then(|| lines.next().map(str::to_owned)).flatten()
}

fn lock_beside(path: &Path) -> Result<File, AgentError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let beside = PathBuf::from(beside);
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(&beside);
    let mut file = opened
        .map_err(|error| AgentError::new(format!("cannot open the lock {}: {error}", beside.display())))?;
    let about = file.metadata().map_err(|error| AgentError::new(format!("{}: {error}", beside.display())))?;
    let is_empty = about.len() == 0;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) if is_empty || made_by_one_of_us(&mut file).is_some() => {}
        Ok(()) => {
            let sentence =
                "is there already, and is no lock of bellwether's: choose another path for the socket";
            return Err(AgentError::new(format!("{} {sentence}", beside.display())));
        }
        Err(error) if error == rustix::io::Errno::WOULDBLOCK => {
            let sentence = "another bellwether serves it: choose another path";
            return Err(AgentError::new(format!("{}: {sentence}", path.display())));
        }
        Err(error) => return Err(AgentError::new(format!("cannot lock {}: {error}", beside.display()))),
    }
    file.rewind().map_err(|error| AgentError::new(format!("cannot read {}: {error}", beside.display())))?;
    Ok(file)
}

impl Drop for SocketFile {
    /// The lock's file stays: to remove it would let two others lock two files of one name.
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|about| identity(&about) == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &Path) -> String {
        bind(path).expect_err("refused").to_string()
    }

    #[test]
    fn a_stale_socket_of_ours_is_replaced_and_a_living_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let (listener, mut file) = bind(&path).unwrap();
        assert!(refused(&path).contains("another bellwether serves it"));
        // As after a kill: the file stays, the lock does not.
        let identity = std::mem::take(&mut file.identity);
        drop((listener, file));
        assert!(path.exists() && !identity.is_empty());
        let again = bind(&path).unwrap();
        drop(again);
        assert!(!path.exists(), "one that ends well takes its file along");
    }

    #[test]
    fn what_others_made_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        for make in [
            |path: &Path| drop(UnixListener::bind(path).unwrap()),
            |path: &Path| fs::write(path, "precious").unwrap(),
            |path: &Path| fs::create_dir(path).unwrap(),
            |path: &Path| std::os::unix::fs::symlink("/nowhere", path).unwrap(),
        ] {
            // Ours was there once, and was killed.
            let (_, mut file) = bind(&path).unwrap();
            file.identity.clear();
            drop(file);
            fs::remove_file(&path).unwrap();
            make(&path);
            assert!(refused(&path).contains("did not make it"));
            assert!(fs::symlink_metadata(&path).is_ok(), "still there");
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
        }
    }

    #[test]
    fn a_lock_that_is_something_else_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let beside = directory.path().join("s.lock");
        fs::write(&beside, "somebody else's notes\n").unwrap();
        assert!(refused(&path).contains("no lock of bellwether's"));
        assert_eq!(fs::read_to_string(&beside).unwrap(), "somebody else's notes\n");
    }
}
