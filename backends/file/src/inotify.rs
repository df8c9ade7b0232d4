//! The kernel's notification queue on Linux.
//!
//! Owns the inotify descriptor and which watch stands for which election. Turns names into notices and drops what is
//! nobody's business: temporary files, notes, and the removal of old records by a sweep. Repeated notices of one reading
//! become one. Leaves polling to [`crate::notify`].

use std::collections::{HashMap, VecDeque};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Mutex;

use bellwether_backend::lock;
use bellwether_core::{ElectionName, StoreError};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use crate::errors::meaning;
use crate::liveness::incarnation_of;
use crate::notify::FileNotice;
use crate::numbered::number;
use crate::sweep::KEPT;

/// Room for some hundred events of one reading.
const BUFFER_BYTES: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct KernelQueue {
    fd: AsyncFd<OwnedFd>,
    watched: Mutex<WatchTable>,
}

#[derive(Debug, Default)]
struct WatchTable {
    by_descriptor: HashMap<i32, WatchedDirectory>,
    by_election: HashMap<ElectionName, i32>,
}

#[derive(Debug)]
pub(crate) struct WatchedDirectory {
    /// Several when symbolic links lead to one directory.
    pub(crate) elections: Vec<ElectionName>,
    /// Highest record number that was announced.
    pub(crate) highest: u64,
}

impl KernelQueue {
    pub(crate) fn new() -> Result<KernelQueue, StoreError> {
        let failed = |errno| meaning("watch", Path::new("directories"), errno);
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(failed)?;
        #[allow(
            deprecated,
            reason = "unsound only for types that change their descriptor, which an `OwnedFd` cannot; the \
                      replacement is an unsafe function, and there is no unsafe code in this crate"
        )]
        let fd = AsyncFd::new(fd)
            .map_err(|error| failed(error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)))?;
        Ok(KernelQueue { fd, watched: Mutex::default() })
    }

    /// False when the kernel's limits do not allow another one.
    pub(crate) fn watch(&self, election: &ElectionName, dir: &Path) -> Result<bool, StoreError> {
        let flags = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        // Held over the call, so that an event cannot be read before its descriptor is known.
        let mut watched = lock(&self.watched);
        let descriptor = match inotify::add_watch(self.fd.get_ref(), dir, flags) {
            Ok(descriptor) => descriptor,
            Err(Errno::NOSPC | Errno::NOMEM) => return Ok(false),
            Err(errno) => return Err(meaning("watch", dir, errno)),
        };
        if watched.by_election.get(election) != Some(&descriptor) {
            self.forget(&mut watched, election);
            watched.by_election.insert(election.clone(), descriptor);
            let directory = watched
                .by_descriptor
                .entry(descriptor)
                .or_insert_with(|| WatchedDirectory { elections: Vec::new(), highest: 0 });
            directory.elections.push(election.clone());
        }
        Ok(true)
    }

    pub(crate) fn unwatch(&self, election: &ElectionName) {
        self.forget(&mut lock(&self.watched), election);
    }

    fn forget(&self, watched: &mut WatchTable, election: &ElectionName) {
        let Some(descriptor) = watched.by_election.remove(election) else { return };
        let Some(directory) = watched.by_descriptor.get_mut(&descriptor) else { return };
        directory.elections.retain(|other| other != election);
        if directory.elections.is_empty() {
            watched.by_descriptor.remove(&descriptor);
            let _ = inotify::remove_watch(self.fd.get_ref(), descriptor);
        }
    }

    /// Waits until there is something, and takes all of it.
    pub(crate) async fn read(&self, notices: &mut VecDeque<FileNotice>) {
        let Ok(mut ready) = self.fd.readable().await else {
            // The runtime is shutting down: nobody will be woken again.
            return std::future::pending().await;
        };
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = inotify::Reader::new(self.fd.get_ref(), &mut buffer);
        let mut watched = lock(&self.watched);
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().and_then(|name| name.to_str().ok());
                    self.take(&mut watched, event.wd(), event.events(), name, notices);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return ready.clear_ready(),
                // Not one that the kernel documents; looking at everything is right after any.
                Err(_) => {
                    ready.clear_ready();
                    return add(notices, FileNotice::Anything);
                }
            }
        }
    }

    fn take(
        &self,
        watched: &mut WatchTable,
        descriptor: i32,
        what: ReadFlags,
        name: Option<&str>,
        notices: &mut VecDeque<FileNotice>,
    ) {
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            return add(notices, FileNotice::Anything);
        }
        let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED | ReadFlags::UNMOUNT;
        if what.intersects(gone) {
            if let Some(directory) = watched.by_descriptor.remove(&descriptor) {
                // A directory that was moved away is still watched, under a path that nobody uses.
                let _ = inotify::remove_watch(self.fd.get_ref(), descriptor);
                for election in directory.elections {
                    watched.by_election.remove(&election);
                    add(notices, FileNotice::Gone(election));
                }
            }
            return;
        }
        let (Some(directory), Some(name)) = (watched.by_descriptor.get_mut(&descriptor), name) else {
            return;
        };
        for notice in directory.notices(what, name) {
            add(notices, notice);
        }
    }
}

impl WatchedDirectory {
    pub(crate) fn notices(&mut self, what: ReadFlags, name: &str) -> Vec<FileNotice> {
        if let Some(incarnation) = incarnation_of(name) {
            let closed = what.contains(ReadFlags::CLOSE_WRITE);
            let elections = self.elections.iter().filter(|_| closed);
            return elections.map(|election| FileNotice::Closed(election.clone(), incarnation)).collect();
        }
        // Notes beside the lease are nobody's business, and neither is the removal of old records by a sweep.
        let Some(number) = name.strip_suffix(".json").and_then(number) else { return Vec::new() };
        let removed = what.contains(ReadFlags::DELETE);
        if removed && number.saturating_add(KEPT as u64) <= self.highest {
            return Vec::new();
        }
        self.highest = if removed { self.highest } else { number };
        self.elections.iter().map(|election| FileNotice::Record(election.clone())).collect()
    }
}

/// One write makes a handful of events in a row; the last few are enough to make them one, at a cost that stays
/// the same when thousands of elections change at once.
fn add(notices: &mut VecDeque<FileNotice>, notice: FileNotice) {
    if !notices.iter().rev().take(16).any(|waiting| *waiting == notice) {
        notices.push_back(notice);
    }
}
