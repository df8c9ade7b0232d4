//! A file's content, replaced as a whole, and only if no later epoch has written.
//!
//! Owns a directory in the file's place, which holds the content's versions:
//!
//! ```text
//! DIR/41.fenced … 48.fenced    the highest number is the content, under a first line that says who wrote it; the last eight stay
//! DIR/.tmp-…                   being written, or left by a crash and swept after ten minutes
//! ```
//!
//! # Why a writer that was stopped can do no harm
//!
//! There is no lock that a stopped process could keep from others. Version N+1 is made complete under a name of its own, flushed to disk
//! and then linked: `link(2)` fails where the name exists. So of all who found version N, one writes N+1, and the others look again and
//! find its epoch. A writer that sleeps so long that even N+1 was swept links a file below the highest number, which no reader looks
//! at; it finds that out and takes its file away. [`Numbered`] has the argument in full, with a writer that is stopped at every step.
//!
//! A file that is simply renamed into place could not do this: `rename(2)` replaces whatever is there, and a writer that was stopped
//! between its check and its rename would undo a later epoch's write hours afterwards.
//!
//! # Where it holds
//!
//! On file systems whose `link(2)` is atomic and exclusive, between all who see the same directory: ext4, xfs, btrfs, tmpfs and other local
//! ones. On NFS the server's `LINK` is atomic, but clients may list a directory from their caches: a reader may be behind, a writer is
//! not misled, since its link fails. FAT and some FUSE file systems have no hard links; a write there fails and says so.
//!
//! # How to read
//!
//! [`read`] and [`FencedFile::read`], or in a shell:
//!
//! ```sh
//! newest() { ls "$1" | grep -E '^[0-9]+\.fenced$' | sort -n | tail -n 1; }
//! tail -n +2 "DIR/$(newest DIR)"     # the content; `head -n 1` for who wrote it
//! ```
//!
//! A shell that is overtaken by eight writes between the two commands finds no file, and tries again. There is no link named `current`
//! on purpose: whoever was stopped before moving it would move it back.
//!
//! # What it leaves to others
//!
//! - **Appending**: there is none. A check followed by an append is two steps, and a writer stopped in between appends to what a later
//!   epoch has written. Let every epoch append to a file of its own, named after it, and keep the list of these files with their lengths here.
//! - Calls block for disk time; in a runtime, run them on a thread that may wait.
//! - Files of others are never changed or removed. A version deleted by hand rolls the content back, as restoring a backup does.

mod header;

use std::path::{Path, PathBuf};

use bellwether_core::{ElectionName, Epoch, ErrorKind, StoreError};
use bellwether_file::{FoundValue, Numbered, Value as FileValue, Written};

use crate::rule::{admit, admit_adopting};
use crate::{Failure, FenceError, Found, Stamp, Value};

/// The longest content with its first line: each write makes a whole copy, and eight of them stay.
pub const CONTENT_MAX_BYTES: usize = 16 * 1024 * 1024;

const ENDING: &str = ".fenced";
/// How often a writer looks again because another was faster. Each time somebody's write was done, so only a crowd gets here.
const ROUNDS: usize = 256;

/// A file's content, which only the latest epoch of one election replaces. The module's documentation says how.
///
/// ```
/// use bellwether_core::{ElectionName, Epoch};
/// use bellwether_fence::file::FencedFile;
///
/// # let dir = std::env::temp_dir().join(format!("fenced-doc-{}", std::process::id()));
/// let routes = FencedFile::new(&dir, ElectionName::new("router").unwrap());
/// let (seven, eight) = (Epoch::new(7).unwrap(), Epoch::new(8).unwrap());
///
/// routes.write(seven, b"via a").unwrap();
/// assert_eq!(routes.raise(eight).unwrap().as_deref(), Some(&b"via a"[..]));
/// let late = routes.write(seven, b"too late").unwrap_err();
/// assert_eq!(late.fenced().unwrap().latest, eight);
/// # std::fs::remove_dir_all(dir).unwrap();
/// ```
#[derive(Debug)]
pub struct FencedFile {
    versions: Numbered,
    election: ElectionName,
}

/// The content in this directory, and who wrote it, whichever election that belongs to.
///
/// # Errors
/// When it cannot be read.
pub fn read(dir: impl Into<PathBuf>) -> Result<Value<Vec<u8>>, FenceError> {
    match content(load(&versions(dir.into()))?) {
        (Found::Unreadable(what), _) => Err(Failure::Unreadable(what).into()),
        (Found::By(stamp), content) => Ok(Value { stamp: Some(stamp), content }),
        (Found::Nothing | Found::Unstamped, content) => Ok(Value { stamp: None, content }),
    }
}

impl FencedFile {
    /// That of this election in this directory. Looks at nothing yet; the first write makes the directory, in one that exists.
    pub fn new(dir: impl Into<PathBuf>, election: impl Into<ElectionName>) -> FencedFile {
        FencedFile { versions: versions(dir.into()), election: election.into() }
    }

    /// Where its versions are.
    pub fn dir(&self) -> &Path {
        self.versions.dir()
    }

    /// The content, and who wrote it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self) -> Result<Value<Vec<u8>>, FenceError> {
        read(self.versions.dir())
    }

    /// Replaces the content.
    ///
    /// # Errors
    /// As [`FenceError`] says: fenced, unknown or failed.
    pub fn write(&self, epoch: Epoch, content: &[u8]) -> Result<(), FenceError> {
        self.replace(epoch, admit, &mut |_| Some(content.to_vec())).map(drop)
    }

    /// Replaces the content by what `change` makes of it, and returns that. `change` is called again when somebody else was faster.
    ///
    /// # Errors
    /// As [`FenceError`] says: fenced, unknown or failed.
    pub fn update(
        &self,
        epoch: Epoch,
        mut change: impl FnMut(Option<Vec<u8>>) -> Vec<u8>,
    ) -> Result<Vec<u8>, FenceError> {
        let written = self.replace(epoch, admit, &mut |before| Some(change(before)))?;
        Ok(written.unwrap_or_default())
    }

    /// Writes what is there again, under this epoch, and returns it: from now on no earlier epoch writes. A new leader does this before
    /// it reads what its predecessors left.
    ///
    /// # Errors
    /// As [`FenceError`] says: fenced, unknown or failed.
    pub fn raise(&self, epoch: Epoch) -> Result<Option<Vec<u8>>, FenceError> {
        self.replace(epoch, admit, &mut |before| before)
    }

    /// As [`raise`](FencedFile::raise), also where somebody wrote the content without an epoch.
    ///
    /// Nothing tells whether that was a later epoch's leader by other means, so do this by hand, or once, before any leader writes.
    ///
    /// # Errors
    /// As [`FenceError`] says: fenced, unknown or failed.
    pub fn adopt(&self, epoch: Epoch) -> Result<Option<Vec<u8>>, FenceError> {
        self.replace(epoch, admit_adopting, &mut |before| before)
    }

    /// Removes the content. The epoch stays, and refuses earlier ones.
    ///
    /// # Errors
    /// As [`FenceError`] says: fenced, unknown or failed.
    pub fn remove(&self, epoch: Epoch) -> Result<(), FenceError> {
        self.replace(epoch, admit, &mut |_| None).map(drop)
    }

    fn replace(
        &self,
        epoch: Epoch,
        rule: fn(&Found, &Stamp) -> Result<(), FenceError>,
        next: &mut dyn FnMut(Option<Vec<u8>>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, FenceError> {
        let stamp = Stamp::new(&self.election, epoch);
        for _ in 0..ROUNDS {
            let value = load(&self.versions)?;
            let version = value.as_ref().map(|value| value.version);
            let (found, before) = content(value);
            rule(&found, &stamp)?;
            let after = next(before);
            if version.is_none() {
                make(self.versions.dir())?;
            }
            let bytes = header::write(&stamp, after.as_deref());
            // Over the very version whose stamp was judged, or not at all.
            match self.versions.replace(version, &bytes).map_err(Failure::Store)? {
                Written::Done(_) => return Ok(after),
                Written::Conflict => {}
                Written::TakenBack => return Err(FenceError::Unknown(overtaken(self.versions.dir()))),
                Written::Unknown(error) => return Err(FenceError::Unknown(error)),
            }
        }
        let sentence =
            format!("others write {} faster than this process does", self.versions.dir().display());
        Err(Failure::Store(StoreError::new(ErrorKind::Unavailable, BACKEND, sentence)).into())
    }
}

/// The name of this store in errors.
const BACKEND: &str = "file";

fn versions(dir: PathBuf) -> Numbered {
    let ours = |bytes: &[u8]| matches!(header::read(bytes).0, Found::By(_));
    Numbered::new(dir, "", ours).holding(ENDING, CONTENT_MAX_BYTES)
}

fn load(versions: &Numbered) -> Result<Option<FoundValue>, FenceError> {
    versions.load().map_err(|error| Failure::Store(error).into())
}

fn content(value: Option<FoundValue>) -> (Found, Option<Vec<u8>>) {
    match value.map(|value| value.value) {
        None => (Found::Nothing, None),
        Some(FileValue::Bytes(bytes)) => {
            let (found, content) = header::read(&bytes);
            (found, content.map(<[u8]>::to_vec))
        }
        Some(FileValue::Huge) => {
            (Found::Unreadable(format!("it has more than {CONTENT_MAX_BYTES} bytes")), None)
        }
        Some(FileValue::NotAFile) => (Found::Unreadable("it is not a regular file".to_owned()), None),
    }
}

fn overtaken(dir: &Path) -> StoreError {
    let sentence = format!(
        "while this process was stopped, others wrote {} so often that nothing tells whether this write came before them; it is not \
         the content now",
        dir.display()
    );
    StoreError::new(ErrorKind::Unavailable, BACKEND, sentence)
}

/// Makes the directory, and its name durable, before anything in it counts.
fn make(dir: &Path) -> Result<(), FenceError> {
    let made = match std::fs::create_dir(dir) {
        Ok(()) => {
            let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
            std::fs::File::open(parent.unwrap_or(Path::new("."))).and_then(|parent| parent.sync_all())
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    };
    made.map_err(|error| {
        let (kind, advice) = match error.kind() {
            std::io::ErrorKind::NotFound => {
                (ErrorKind::Misconfigured, "make the directory that it is to be in")
            }
            std::io::ErrorKind::PermissionDenied => {
                (ErrorKind::PermissionDenied, "give this user the permission, or make it by hand")
            }
            _ => (ErrorKind::Unavailable, "see what the system says"),
        };
        let sentence = format!("cannot make the directory {}: {advice}", dir.display());
        Failure::Store(StoreError::new(kind, BACKEND, sentence).caused_by(error)).into()
    })
}
