//! What witnesses protect, and what came of it: files in one directory.
//!
//! | file | what |
//! |---|---|
//! | `exclusive` | a lock that one witness at a time can have |
//! | `broken` | a line for each witness that met another there |
//! | `unchecked` | a line for each write, whoever writes |
//! | `checked` | a line for each write that the fence let pass |
//! | `refused` | a line for each write that it did not |
//!
//! A line of the last three is an epoch and the candidate that wrote under it. Lines are written in one piece each, so they are whole and in the order in
//! which they landed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// The files of one run.
#[derive(Clone, Debug)]
pub(crate) struct Protected {
    directory: PathBuf,
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

impl Protected {
    pub(crate) fn in_directory(directory: impl Into<PathBuf>) -> Protected {
        Protected { directory: directory.into() }
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
        self.lines("broken").lines().map(str::to_owned).collect()
    }

    /// Writes without asking whether a newer epoch has written.
    pub(crate) fn write_unchecked(&self, epoch: u64, who: &str) -> io::Result<()> {
        self.append("unchecked", &format!("{epoch} {who}"))
    }

    /// Writes unless a newer epoch has written; false if so.
    pub(crate) fn write_checked(&self, epoch: u64, who: &str) -> io::Result<bool> {
        let fence = File::options().create(true).append(true).open(self.directory.join("fence"))?;
        // Until the file is closed, so that nobody writes between the check and the write.
        flock(&fence, FlockOperation::LockExclusive)?;
        let passes = epoch >= self.fenced();
        if passes {
            // First what others go by: whoever is stopped in between has refused older epochs already.
            fs::write(self.directory.join("fenced.new"), epoch.to_string())?;
            fs::rename(self.directory.join("fenced.new"), self.directory.join("fenced"))?;
        }
        self.append(if passes { "checked" } else { "refused" }, &format!("{epoch} {who}"))?;
        Ok(passes)
    }

    /// The highest epoch that passed the fence.
    pub(crate) fn fenced(&self) -> u64 {
        fs::read_to_string(self.directory.join("fenced")).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// What landed so far.
    pub(crate) fn fencing(&self) -> Fencing {
        let (unchecked, unchecked_late) = self.landed("unchecked");
        let (checked, checked_late) = self.landed("checked");
        let (refused, _) = self.landed("refused");
        Fencing { unchecked, unchecked_late, checked, checked_late, refused }
    }

    /// How many writes landed in a file, and how many after one of a newer epoch.
    fn landed(&self, name: &str) -> (u64, u64) {
        let (mut all, mut late, mut newest) = (0, 0, 0);
        for line in self.lines(name).lines() {
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

    fn lines(&self, name: &str) -> String {
        read(&self.directory.join(name))
    }
}

/// A file that is not there holds nothing.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_write_lands_unchecked_and_not_where_the_epoch_is_checked() {
        let directory = tempfile::tempdir().unwrap();
        let protected = Protected::in_directory(directory.path());
        for (epoch, passes) in [(3, true), (3, true), (7, true), (3, false), (7, true)] {
            protected.write_unchecked(epoch, "a").unwrap();
            assert_eq!(protected.write_checked(epoch, "a").unwrap(), passes);
        }
        let found = protected.fencing();
        let wanted = Fencing { unchecked: 5, unchecked_late: 1, checked: 4, checked_late: 0, refused: 1 };
        assert_eq!((found, protected.fenced()), (wanted, 7));
    }

    #[test]
    fn a_write_that_passed_where_it_must_not_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("checked"), "5 a\n6 b\n5 a\nnonsense\n6 b\n").unwrap();
        let found = Protected::in_directory(directory.path()).fencing();
        assert_eq!((found.checked, found.checked_late), (4, 1));
    }

    #[test]
    fn one_at_a_time_has_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let protected = Protected::in_directory(directory.path());
        let held = protected.exclusive().unwrap();
        assert!(held.is_some() && protected.exclusive().unwrap().is_none());
        drop(held);
        assert!(protected.exclusive().unwrap().is_some());
        protected.broken("b under 4").unwrap();
        assert_eq!(protected.told_broken(), ["b under 4"]);
    }
}
