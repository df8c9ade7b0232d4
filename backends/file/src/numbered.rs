//! A compare-and-set register made of numbered files: no lock, so a process stopped anywhere holds nobody up.
//!
//! Owns the files `<prefix>N.json` of one directory, or `N` with another ending: the file with the highest number is the value, and its
//! number and identity are the version. Assumes of the file system that `link(2)` is atomic and exclusive, and
//! that a listing contains every name that was there during all of it. Leaves to the caller what the bytes
//! mean, who may write, and to make the directory ([`crate::prepare`]). Every call blocks for disk time, so
//! it belongs on a thread that may.
//!
//! # A write from N to N+1
//!
//! ```text
//!  1 check    N is the highest, and still the file that the caller read
//!  2 temp     a complete copy under a name of its own, on disk (fsync)
//!  3 check    as 1: cheap, and keeps a writer that waited for the disk from leaving rubbish
//!  4 link     temp → N+1          exists already → Conflict: somebody else was first
//!  5 sync     the directory, so that the number is never issued again after a loss of power
//!  6 look     are the conditions of 1 true of the moment of 4?    no → remove our own, Conflict
//!  7 sweep    the temporary file, records of ours older than the last eight, forgotten temporary files
//! ```
//!
//! # Why at most one write follows N
//!
//! - **Two writers at N**: the name N+1 exists once; the second gets Conflict at step 4.
//! - **A writer that slept between 3 and 4** while others went on: N+1 exists, and it gets Conflict, unless
//!   N+1 was swept by then. Sweeping goes upwards and ends at the first failure, so N was swept before N+1, and step
//!   6 finds it gone. What it linked meanwhile was below the highest and never counted. Killed before step 6
//!   it leaves a file below the highest, which the next sweep takes.
//! - **The same, where N is not ours** and so is never swept: that N is still there proves nothing. Step 6 then counts only a
//!   write that nobody has gone on from.
//! - **Built upon**: if N is still there and N+1 is ours, our link took place while N was the newest, even if
//!   others have gone on to N+2 since: the write is Done, and stale at once. The caller counts its lease
//!   from before the call, so a late Done grants nothing.
//! - **Creation** (`at` is `None`) needs an empty listing twice and takes the highest number it ever knew, plus one.
//!   Creators that knew different numbers can both link; then at step 6 the upper one sees a lower number and the
//!   lower one a gap above itself, and of two whose links and looks overlap no two are Done. Both may lose and try again.
//! - **A creator that slept until the first value was swept** finds as many values above its own as a sweep leaves. It counts as a
//!   creator only where there are fewer.
//!
//! # Records deleted by hand
//!
//! Whoever deletes the highest record rolls the register back, as restoring a backup does. A writer whose
//! N was deleted finds out at step 6 and takes its own N+1 away; one that dies in between leaves a record that
//! never was a success. That record shows: the number below it is missing while others are there. [`FoundValue::settled`]
//! is false for it, and a caller that would take over at once, on proof of death, then waits as if it had no proof.
//! A directory that was moved away and made again is noticed at step 6 by comparing the path with the descriptor.
//!
//! # Reading
//!
//! List, open the highest, and list again if it was swept in between. If opening succeeds, nothing higher that
//! was there when the listing began had been swept (upwards!), so it is in the listing: the answer is no older than
//! the call. (A file that is not ours can be opened at any time; there the listing is made once more.) Eight numbers stay, so a listing comes out empty only if eight writes overtake it; twice in a row is believed.
//! A reader that is wrong all the same is harmless: every write checks again.
//!
//! A directory, link or pipe under a record's name counts as a record that cannot be read
//! ([`Value::NotAFile`]): were it ignored, the name would be taken for ever and the register stuck. Like every file that
//! is not ours it stays where it is, below the records that follow.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bellwether_backend::Write;
use bellwether_core::{ErrorKind, StoreError};
use rustix::io::Errno;

use crate::directory::{Directory, FileIdentity};
use crate::errors::{BACKEND, linking, meaning, misconfigured};
use crate::sweep;
use crate::value::{FoundValue, NUMBER_MAX, Ours, RECORD_MAX_BYTES, Value, Version, Written};

/// How often a reader follows records that are swept under its hands before it says so.
const READ_ATTEMPTS: usize = 16;

/// The files of one prefix in one directory.
#[derive(Debug)]
pub struct Numbered {
    dir: PathBuf,
    prefix: String,
    ending: &'static str,
    pub(crate) max_bytes: usize,
    pub(crate) ours: Ours,
    /// The highest number seen by this process: after a deletion numbers go on above it.
    known: AtomicU64,
    #[cfg(test)]
    pub(crate) pauses: crate::numbered_tests::Pauses,
}

impl Numbered {
    /// `prefix` stands before the number: empty for leases, `history.` and the like for notes. `ours` tells which values may
    /// be removed once they are old.
    pub fn new(dir: impl Into<PathBuf>, prefix: impl Into<String>, ours: Ours) -> Numbered {
        Numbered {
            dir: dir.into(),
            prefix: prefix.into(),
            ending: ".json",
            max_bytes: RECORD_MAX_BYTES,
            ours,
            known: AtomicU64::new(0),
            #[cfg(test)]
            pauses: Default::default(),
        }
    }

    /// The same for values that are not records of elections: files that end in `ending`, of at most `max_bytes` each.
    #[must_use]
    pub fn holding(self, ending: &'static str, max_bytes: usize) -> Numbered {
        Numbered { ending, max_bytes, ..self }
    }

    /// Where the files are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The newest value; `None` when there is none, or no directory. Changes nothing.
    pub fn load(&self) -> Result<Option<FoundValue>, StoreError> {
        let failed = |errno| meaning("read", &self.dir, errno);
        let mut empty_listings = 0;
        for _ in 0..READ_ATTEMPTS {
            let dir = match Directory::open(&self.dir) {
                Ok(dir) => dir,
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(failed(errno)),
            };
            let numbers = self.numbers(&dir).map_err(failed)?;
            self.pause("listed");
            let Some(&number) = numbers.last() else {
                empty_listings += 1;
                if empty_listings == 2 {
                    return Ok(None);
                }
                continue;
            };
            let Some((identity, value)) = self.value(&dir, number).map_err(failed)? else { continue };
            // Asked by name: a listing may miss a number that came while it was made, though it has the next one.
            let alone = numbers.len() == 1;
            let settled = alone || number > 0 && dir.stat(&self.name(number - 1)).map_err(failed)?.is_some();
            // The number below may also have been swept because we were slow: then this one is not the newest either. One that
            // is not ours is never swept, so that it could be opened says nothing.
            let doubtful = !settled || !self.is_ours(&value);
            if doubtful && self.numbers(&dir).map_err(failed)?.last() != Some(&number) {
                continue;
            }
            return Ok(Some(FoundValue { version: Version { number, identity }, value, settled }));
        }
        let message = format!("records in {} are replaced faster than they can be read", self.dir.display());
        Err(StoreError::new(ErrorKind::Unavailable, BACKEND, message))
    }

    /// Replaces the value `at`, or makes the first one; the module's documentation has the argument. What was taken back counts as a
    /// conflict.
    ///
    /// # Errors
    /// When it is certainly not written.
    pub fn write(&self, at: Option<Version>, bytes: &[u8]) -> Result<Write<Version>, StoreError> {
        Ok(match self.replace(at, bytes)? {
            Written::Done(version) => Write::Done(version),
            Written::Conflict | Written::TakenBack => Write::Conflict,
            Written::Unknown(error) => Write::Unknown(error),
        })
    }

    /// As [`write`](Numbered::write), and tells what was taken back from what never was there.
    ///
    /// # Errors
    /// When it is certainly not written.
    pub fn replace(&self, at: Option<Version>, bytes: &[u8]) -> Result<Written, StoreError> {
        let failed = |errno| meaning("write to", &self.dir, errno);
        if bytes.len() > self.max_bytes {
            let message = format!("a record has at most {} bytes, not {}", self.max_bytes, bytes.len());
            return Err(StoreError::new(ErrorKind::InvalidInput, BACKEND, message));
        }
        let number = self.number_after(at)?;
        let dir = Directory::open(&self.dir).map_err(failed)?;
        if !self.is_newest(&dir, at).map_err(failed)? {
            return Ok(Written::Conflict);
        }
        self.pause("checked");
        let temporary = dir.temporary(bytes).map_err(failed)?;
        self.pause("temporary");
        let Some(identity) = dir.identity(&temporary.name).map_err(failed)? else {
            return self.swept_away(&dir);
        };
        let ours = Version { number, identity };
        if !self.is_newest(&dir, at).map_err(failed)? {
            return Ok(Written::Conflict);
        }
        self.pause("checked again");
        match dir.link(&temporary.name, &self.name(number)) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(Written::Conflict),
            Err(Errno::NOENT) => return self.swept_away(&dir),
            Err(errno) => return Err(linking(&self.dir, errno)),
        }
        self.pause("linked");
        let looked = dir.sync().and_then(|()| {
            self.pause("synced");
            self.took_place(&dir, at, ours)
        });
        self.pause("looked");
        match looked {
            Ok(true) => {}
            Ok(false) => {
                self.take_back(&dir, ours);
                return Ok(Written::TakenBack);
            }
            Err(errno) => return Ok(Written::Unknown(failed(errno))),
        }
        drop(temporary);
        sweep::records(&dir, self, ours.identity);
        Ok(Written::Done(ours))
    }

    fn number_after(&self, at: Option<Version>) -> Result<u64, StoreError> {
        let last = at.map_or_else(|| self.known.load(Ordering::Relaxed), |version| version.number);
        if last < NUMBER_MAX {
            return Ok(last + 1);
        }
        Err(misconfigured(format!(
            "{} has the last possible number; remove it by hand while no candidate runs",
            self.dir.join(self.name(last)).display()
        )))
    }

    /// Steps 1 and 3.
    fn is_newest(&self, dir: &Directory, at: Option<Version>) -> Result<bool, Errno> {
        let Some(version) = at else {
            return Ok(self.numbers(dir)?.is_empty() && self.numbers(dir)?.is_empty());
        };
        Ok(self.numbers(dir)?.last() == Some(&version.number) && self.is_there(dir, version)?)
    }

    /// Step 6.
    fn took_place(&self, dir: &Directory, at: Option<Version>, ours: Version) -> Result<bool, Errno> {
        let numbers = self.numbers(dir)?;
        let overtaken = numbers.last().is_some_and(|&last| last > ours.number);
        let replaced = match at {
            Some(version) => self.is_there(dir, version)? && (!overtaken || self.is_swept(dir, version)?),
            // Where as many stay as a sweep leaves, the first value may have been swept before we linked it once more.
            None => numbers.first() == Some(&ours.number) && numbers.len() <= sweep::KEPT,
        };
        // Asked by name, as in `load`.
        let gap_above = overtaken && dir.stat(&self.name(ours.number + 1))?.is_none();
        Ok(replaced && !gap_above && self.is_there(dir, ours)? && dir.is_in_place()?)
    }

    fn is_there(&self, dir: &Directory, version: Version) -> Result<bool, Errno> {
        Ok(dir.identity(&self.name(version.number))? == Some(version.identity))
    }

    /// Whether a sweep takes this one in its turn.
    fn is_swept(&self, dir: &Directory, version: Version) -> Result<bool, Errno> {
        Ok(self.value(dir, version.number)?.is_some_and(|(_, value)| self.is_ours(&value)))
    }

    fn is_ours(&self, value: &Value) -> bool {
        matches!(value, Value::Bytes(bytes) if (self.ours)(bytes))
    }

    /// Ours never counted, so it goes, if it is still ours: a name is not enough after a deletion by hand.
    fn take_back(&self, dir: &Directory, ours: Version) {
        if self.is_there(dir, ours) == Ok(true) {
            let _ = dir.remove(&self.name(ours.number));
        }
    }

    /// The temporary file has gone: with the directory, or because this process slept until it was swept.
    fn swept_away(&self, dir: &Directory) -> Result<Written, StoreError> {
        match dir.is_in_place() {
            Ok(true) => Ok(Written::Conflict),
            Ok(false) => Err(meaning("write to", &self.dir, Errno::NOENT)),
            Err(errno) => Err(meaning("write to", &self.dir, errno)),
        }
    }

    /// Whether the file of this version is not ours, so that no sweep takes it.
    pub(crate) fn stays(&self, version: Version) -> bool {
        Directory::open(&self.dir).and_then(|dir| self.is_swept(&dir, version)) == Ok(false)
    }

    /// Every value that is there, by number, upwards. For judging the directory as a whole; what is swept meanwhile is left out.
    pub(crate) fn values(&self) -> Result<Vec<(u64, Value)>, StoreError> {
        let failed = |errno| meaning("read", &self.dir, errno);
        let dir = Directory::open(&self.dir).map_err(failed)?;
        let mut values = Vec::new();
        for number in self.numbers(&dir).map_err(failed)? {
            values.extend(self.value(&dir, number).map_err(failed)?.map(|(_, value)| (number, value)));
        }
        Ok(values)
    }

    fn value(&self, dir: &Directory, number: u64) -> Result<Option<(FileIdentity, Value)>, Errno> {
        dir.read_up_to(&self.name(number), self.max_bytes)
    }

    /// All numbers, upwards.
    fn numbers(&self, dir: &Directory) -> Result<Vec<u64>, Errno> {
        let mut numbers: Vec<u64> = dir.names()?.iter().filter_map(|name| self.number_of(name)).collect();
        numbers.sort_unstable();
        if let Some(&last) = numbers.last() {
            self.known.fetch_max(last, Ordering::Relaxed);
        }
        Ok(numbers)
    }

    pub(crate) fn name(&self, number: u64) -> String {
        format!("{}{number}{}", self.prefix, self.ending)
    }

    pub(crate) fn number_of(&self, name: &str) -> Option<u64> {
        number(name.strip_prefix(self.prefix.as_str())?.strip_suffix(self.ending)?)
    }

    #[cfg(test)]
    fn pause(&self, step: &'static str) {
        self.pauses.at(step);
    }

    #[cfg(not(test))]
    fn pause(&self, _: &'static str) {}
}

/// Only the one spelling that we write, so that `7` and `007` cannot both be there.
pub(crate) fn number(digits: &str) -> Option<u64> {
    let number: u64 = digits.parse().ok()?;
    (number <= NUMBER_MAX && number.to_string() == digits).then_some(number)
}
