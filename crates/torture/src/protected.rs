//! What witnesses protect, and what came of it: files in one directory.
//!
//! | file | what |
//! |---|---|
//! | `exclusive` | a lock that one witness at a time can have |
//! | `broken` | a line for each witness that met another there |
//! | `unchecked` | a line for each write, whoever writes: an epoch, and the candidate that wrote under it |
//! | `checked` | a fenced file, as `bellwether-fence` has them, which counts the writes that landed in it |
//! | `refused` | a line for each write that the fence refused |
//!
//! Lines are written in one piece each, so they are whole and in the order in which they landed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use bellwether_core::{ElectionName, Epoch};
use bellwether_fence::FenceError;
use bellwether_fence::file::FencedFile;
use rustix::fs::{FlockOperation, flock};

/// The files of one run.
#[derive(Debug)]
pub(crate) struct Protected {
    directory: PathBuf,
    checked: FencedFile,
}

/// What landed in the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fencing {
    /// Writes without a check.
    pub unchecked: u64,
    /// Those of them that landed after one of a newer epoch: what fencing is for.
    pub unchecked_late: u64,
    /// Writes that passed the fence.
    pub checked: u64,
    /// Those of them that landed after one of a newer epoch. There must be none.
    pub checked_late: u64,
    /// Writes of an older epoch that the fence refused.
    pub refused: u64,
}

/// The content of the fenced file: every write counts the one before it, so that none can be undone without a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    writes: u64,
    /// Those after one of a newer epoch.
    late: u64,
    newest: u64,
}

impl Protected {
    pub(crate) fn in_directory(directory: impl Into<PathBuf>, on: ElectionName) -> Protected {
        let directory = directory.into();
        Protected { checked: FencedFile::new(directory.join("checked"), on), directory }
    }

    /// The lock that one witness at a time can have; `None` while another has it. Kept until the file is closed.
    pub(crate) fn exclusive(&self) -> io::Result<Option<File>> {
        let file = File::options().create(true).append(true).open(self.directory.join("exclusive"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Tells that a witness met another.
    pub(crate) fn broken(&self, who: &str) -> io::Result<()> {
        self.append("broken", who)
    }

    /// What was told of that.
    pub(crate) fn told_broken(&self) -> Vec<String> {
        self.text("broken").lines().map(str::to_owned).collect()
    }

    /// Writes without asking whether a newer epoch has written.
    pub(crate) fn write_unchecked(&self, epoch: Epoch, who: &str) -> io::Result<()> {
        self.append("unchecked", &format!("{epoch} {who}"))
    }

    /// Writes unless a newer epoch has written; false if so.
    pub(crate) fn write_checked(&self, epoch: Epoch, who: &str) -> io::Result<bool> {
        let written = self.checked.update(epoch, |before| Count::of(before).and(epoch).content());
        match written {
            Ok(_) => Ok(true),
            Err(FenceError::Fenced(_)) => self.append("refused", &format!("{epoch} {who}")).map(|()| false),
            // It may have landed; nobody relies on it.
            Err(FenceError::Unknown(_)) => Ok(true),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// The highest epoch that passed the fence.
    pub(crate) fn fenced(&self) -> Option<Epoch> {
        Some(self.checked.read().ok()?.stamp?.epoch)
    }

    /// What landed so far.
    pub(crate) fn fencing(&self) -> Fencing {
        let (unchecked, unchecked_late) = self.landed_unchecked();
        let count = Count::of(self.checked.read().ok().and_then(|value| value.content));
        let refused = self.text("refused").lines().count() as u64;
        Fencing { unchecked, unchecked_late, checked: count.writes, checked_late: count.late, refused }
    }

    /// How many writes landed without a check, and how many of them after one of a newer epoch.
    fn landed_unchecked(&self) -> (u64, u64) {
        let (mut all, mut late, mut newest) = (0, 0, 0);
        for line in self.text("unchecked").lines() {
            let Some(epoch) = line.split(' ').next().and_then(|epoch| epoch.parse::<u64>().ok()) else {
                continue;
            };
            all += 1;
            late += u64::from(epoch < newest);
            newest = newest.max(epoch);
        }
        (all, late)
    }

    fn append(&self, name: &str, line: &str) -> io::Result<()> {
        let mut file = File::options().create(true).append(true).open(self.directory.join(name))?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// A file that is not there holds nothing.
    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.directory.join(name)).unwrap_or_default()
    }
}

impl Count {
    fn of(content: Option<Vec<u8>>) -> Count {
        let text = String::from_utf8(content.unwrap_or_default()).unwrap_or_default();
        let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Count { writes: next(), late: next(), newest: next() }
    }

    fn and(self, epoch: Epoch) -> Count {
        let (writes, late) = (self.writes + 1, self.late + u64::from(epoch.get() < self.newest));
        Count { writes, late, newest: self.newest.max(epoch.get()) }
    }

    fn content(self) -> Vec<u8> {
        format!("{} {} {}\n", self.writes, self.late, self.newest).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(number: u64) -> Epoch {
        Epoch::new(number).unwrap()
    }

    fn protected() -> (tempfile::TempDir, Protected) {
        let directory = tempfile::tempdir().unwrap();
        let protected = Protected::in_directory(directory.path(), ElectionName::new("e").unwrap());
        (directory, protected)
    }

    #[test]
    fn a_late_write_lands_unchecked_and_not_where_the_epoch_is_checked() {
        let (_directory, protected) = protected();
        for (number, passes) in [(3, true), (3, true), (7, true), (3, false), (7, true)] {
            protected.write_unchecked(epoch(number), "a").unwrap();
            assert_eq!(protected.write_checked(epoch(number), "a").unwrap(), passes);
        }
        let found = protected.fencing();
        let wanted = Fencing { unchecked: 5, unchecked_late: 1, checked: 4, checked_late: 0, refused: 1 };
        assert_eq!((found, protected.fenced()), (wanted, Some(epoch(7))));
    }

    #[test]
    fn a_write_that_passed_where_it_must_not_is_counted() {
        let written =
            [5, 6, 5, 6].into_iter().fold(Count::default(), |count, number| count.and(epoch(number)));
        assert_eq!(Count::of(Some(written.content())), Count { writes: 4, late: 1, newest: 6 });
    }

    #[test]
    fn one_at_a_time_has_the_lock() {
        let (_directory, protected) = protected();
        let held = protected.exclusive().unwrap();
        assert!(held.is_some() && protected.exclusive().unwrap().is_none());
        drop(held);
        assert!(protected.exclusive().unwrap().is_some());
        protected.broken("b under 4").unwrap();
        assert_eq!(protected.told_broken(), ["b under 4"]);
    }
}
