//! The store as a register: what [`Lease`] needs of it.
//!
//! Owns the step from async calls to threads that may wait for a disk: all disk work runs on [`Threads`] of the store's own, but for
//! the proof of death, which is a handful of system calls and made only where the file system is local. Opening a store and looking
//! at it write nothing; directories are made by the first claim.
//!
//! Records deleted by hand: a candidate that had seen them waits for the rest of their ttl, one that had not finds a
//! free election and claims at once, under an epoch that the clock tells. The leader that was deposed so finds out at its
//! next renewal.

use std::collections::HashMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bellwether_backend::{
    Capabilities, Changes, Discarded, Finding, Found, FoundNote, Lease, Life, Note, Probing, Record,
    Register, Write, lock,
};
use bellwether_core::{Candidate, Clock, ElectionName, Epoch, ErrorKind, Incarnation, StoreError};

use crate::directory::Directory;
use crate::election::{ElectionDirectory, look, records};
use crate::errors::{BACKEND, meaning};
use crate::following::Following;
use crate::liveness::life;
use crate::local::{boot_id, is_local};
use crate::names::file_name;
use crate::threads::Threads;
use crate::value::Version;
use crate::{checkup, discard, notes, url};

/// Elections in a directory.
pub type File = Lease<FileRegister>;

/// Opens the elections in `dir`, which need not exist yet. Writes nothing, and reads only where `dir` is.
pub fn open(dir: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Result<File, StoreError> {
    Ok(Lease::new(FileRegister::new(dir.as_ref(), Arc::clone(&clock))?, clock))
}

/// The same for `file:DIR`; see [`directory`](crate::directory()).
pub fn from_url(url: &str, clock: Arc<dyn Clock>) -> Result<File, StoreError> {
    open(url::directory(url)?, clock)
}

/// A directory in which every election has one of its own.
#[derive(Debug)]
pub struct FileRegister {
    store: Arc<DirectoryStore>,
    threads: Arc<Threads>,
}

struct DirectoryStore {
    root: PathBuf,
    /// Its wall clock stands in for an epoch that no record tells.
    clock: Arc<dyn Clock>,
    boot_id: Option<String>,
    crash_proof: bool,
    /// The directories that were not there when this was opened.
    missing: Vec<PathBuf>,
    directories: Mutex<HashMap<ElectionName, Arc<ElectionDirectory>>>,
    following: Arc<Following>,
}

impl fmt::Debug for DirectoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryStore").field("root", &self.root).finish_non_exhaustive()
    }
}

impl FileRegister {
    /// The register alone, to build something else on; [`open`] makes elections of it.
    pub fn new(dir: &Path, clock: Arc<dyn Clock>) -> Result<FileRegister, StoreError> {
        let root = url::absolute(dir)?;
        // The nearest one that exists: what will be made lies on the same file system.
        let existing = root.ancestors().find(|dir| dir.exists()).unwrap_or(&root);
        let local = match is_local(existing) {
            Err(error) if error.kind() == ErrorKind::Misconfigured => return Err(error),
            // A directory that can be passed through and not read: each election's own is asked again later.
            known => known.unwrap_or(false),
        };
        if !local {
            tracing::warn!(
                dir = %root.display(),
                "locks on this file system cannot prove that a process is dead: a leader that is killed is replaced \
                 after its ttl, and not at once; a directory on a disk of this machine can do better"
            );
        }
        let boot_id = boot_id();
        let threads = Arc::new(Threads::default());
        let following = Arc::new(Following::new(&root, boot_id.clone(), Arc::clone(&threads)));
        let crash_proof = local && boot_id.is_some();
        let missing = discard::missing(&root);
        let store = DirectoryStore {
            root,
            clock,
            boot_id,
            crash_proof,
            missing,
            directories: Mutex::default(),
            following,
        };
        Ok(FileRegister { store: Arc::new(store), threads })
    }

    /// The directory of the store.
    pub fn dir(&self) -> &Path {
        &self.store.root
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&DirectoryStore) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = Arc::clone(&self.store);
        self.threads.run(move || work(&store)).await
    }
}

impl DirectoryStore {
    fn election(&self, on: &ElectionName) -> Arc<ElectionDirectory> {
        // Kept for good: it knows the highest number it saw, and so numbers go on after a deletion by hand.
        let mut directories = lock(&self.directories);
        Arc::clone(
            directories.entry(on.clone()).or_insert_with(|| Arc::new(ElectionDirectory::new(&self.root, on))),
        )
    }

    /// Each by the full name in its record, else by its directory's. A directory whose name is a hash, with a record
    /// that does not tell of what, stands for an election that cannot be named.
    fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        let names = match Directory::open(&self.root).and_then(|root| root.names()) {
            Ok(names) => names,
            Err(rustix::io::Errno::NOENT) => return Ok(Vec::new()),
            Err(errno) => return Err(meaning("read", &self.root, errno)),
        };
        let mut elections = Vec::new();
        for name in names.into_iter().filter(|name| !name.starts_with('.')) {
            let Ok(Some((read, _))) = look(&records(&self.root.join(&name))) else { continue };
            let full = read.election.filter(|full| file_name(full) == name);
            let plain = (file_name(&name) == name).then_some(name);
            elections.extend(full.or(plain).and_then(|name| ElectionName::new(name).ok()));
        }
        elections.sort();
        Ok(elections)
    }
}

impl Register for FileRegister {
    type Version = Version;

    fn name(&self) -> &'static str {
        BACKEND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::REGISTER.with(|can| (can.crash_proof, can.create_once) = (self.store.crash_proof, true))
    }

    async fn load(&self, on: &ElectionName) -> Result<Found<Version>, StoreError> {
        let on = on.clone();
        self.blocking(move |store| {
            // Before the look, or what happens in between goes unnoticed.
            store.following.watch(&on);
            store.election(&on).load()
        })
        .await?
    }

    async fn write(&self, on: &ElectionName, at: Option<&Version>, new: &Record) -> Write<Version> {
        let (on, at, new) = (on.clone(), at.copied(), new.clone());
        let written = self.blocking(move |store| {
            let written = store.election(&on).write(at, &new, store.boot_id.as_deref(), store.clock.wall());
            if at.is_none() {
                store.following.watch(&on);
            }
            written
        });
        written.await.unwrap_or_else(Write::Unknown)
    }

    fn follow(&self, on: &ElectionName) {
        self.store.following.follow(on);
    }

    fn unfollow(&self, on: &ElectionName) {
        self.store.following.unfollow(on);
    }

    fn changes(&self) -> Changes<Version> {
        Arc::clone(&self.store.following).changes()
    }

    /// What belongs to a runtime here, the kernel's queue of notices, is made anew with every taking of the news.
    fn change_runtime(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn epoch(
        &self,
        on: &ElectionName,
        replaced: Option<(&Record, &Version)>,
        least: Epoch,
    ) -> Result<Epoch, StoreError> {
        let (on, replaced) = (on.clone(), replaced.map(|(record, _)| record.clone()));
        self.blocking(move |store| store.election(&on).epoch(replaced.as_ref(), least, store.clock.wall()))
            .await?
    }

    fn life(&self, on: &ElectionName, record: &Record) -> Life {
        let Some(incarnation) = record.holder.as_ref().and_then(|holder| holder.incarnation) else {
            return Life::Unknown;
        };
        let dir = self.store.root.join(file_name(on.as_str()));
        life(&dir, incarnation, record.boot_id.as_deref(), self.store.boot_id.as_deref())
    }

    fn retire(&self, on: &ElectionName, who: Incarnation) {
        self.store.election(on).signs.end(who);
    }

    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        self.blocking(DirectoryStore::elections).await?
    }

    async fn read_note(&self, on: &ElectionName, note: &Note) -> Result<FoundNote, StoreError> {
        let (on, note) = (on.clone(), note.clone());
        self.blocking(move |store| notes::read(&store.root, &on, &note)).await?
    }

    async fn write_note(&self, on: &ElectionName, note: &Note, at: Option<u64>, bytes: &[u8]) -> Write<u64> {
        let (on, note, bytes) = (on.clone(), note.clone(), bytes.to_vec());
        let written = self.blocking(move |store| notes::write(&store.root, &on, &note, at, &bytes));
        written.await.map_or_else(Write::Unknown, |written| written.unwrap_or_else(Write::failed))
    }

    async fn checkup(&self, probing: Probing<'_>, _: &dyn Clock) -> Vec<Finding> {
        let runtime = tokio::runtime::Handle::current();
        let may_write = probing == Probing::Write;
        let checkup = move |store: &DirectoryStore| {
            // Which a look at the kernel's notification needs.
            let _runtime = runtime.enter();
            checkup::checkup(&store.root, may_write, &*store.clock)
        };
        self.blocking(checkup).await.unwrap_or_else(|error| vec![Finding::failed("directory", &error)])
    }

    async fn danger_discard(&self, on: &ElectionName) -> Result<Discarded, StoreError> {
        let on = on.clone();
        self.blocking(move |store| {
            let gone = discard::discard(&store.root, &store.missing, &on);
            lock(&store.directories).remove(&on);
            gone
        })
        .await?
    }

    fn crash_proof(&self, on: &ElectionName, who: &Candidate) -> Vec<OwnedFd> {
        self.store.election(on).signs.duplicate(who.incarnation).into_iter().collect()
    }
}
