//! What is to be done, and where its files are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_core::ElectionName;

use crate::Kind;
use crate::plan::PlanOptions;

/// What is to be done.
#[derive(Debug)]
pub struct Settings {
    /// What the faults are drawn from.
    pub seed: u64,
    /// How long faults happen, from the first leadership on.
    pub length: Duration,
    /// That of the candidates.
    pub ttl: Duration,
    /// How many candidates there are.
    pub candidates: usize,
    /// The faults that can happen here.
    pub kinds: BTreeSet<Kind>,
    /// Those that were left out, and why.
    pub left_out: BTreeMap<Kind, String>,
    /// The election, which nobody else takes part in.
    pub election: ElectionName,
    /// The URL of the store.
    pub backend: String,
    /// The way to the servers of the store; `None` where nothing can be put between.
    pub way: Option<Way>,
    /// What a shell runs to restart a server, where [`Kind::ServerRestart`] is among the faults.
    pub server_restart: Option<String>,
    /// What sets wall clocks, where [`Kind::Clock`] is among the faults.
    pub clock: Option<PathBuf>,
    /// This very program.
    pub program: PathBuf,
    /// The files.
    pub places: Places,
}

/// The way to the servers of a store, on which something can be put.
pub struct Way {
    /// `HOST:PORT` of each.
    pub servers: Vec<String>,
    /// The URL of the store by way of these addresses instead, one for each server. The directory is for files that it needs.
    pub through: Through,
}

/// From addresses, and a directory of the candidate's own, to a URL; or why there is none.
pub type Through = Box<dyn Fn(&[SocketAddr], &Path) -> Result<String, String> + Send>;

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Way").field("servers", &self.servers).finish_non_exhaustive()
    }
}

/// The directory of a run.
#[derive(Clone, Debug)]
pub struct Places {
    root: PathBuf,
}

impl Settings {
    pub(crate) fn plan(&self) -> PlanOptions {
        PlanOptions {
            seed: self.seed,
            length: self.length,
            ttl: self.ttl,
            candidates: self.candidates,
            kinds: self.kinds.clone(),
        }
    }
}

impl Places {
    /// Makes what a run needs in this directory, which is there and empty.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn make(root: impl Into<PathBuf>) -> io::Result<Places> {
        let places = Places { root: root.into() };
        for directory in [places.all_events(), places.witness(), places.ways(), places.root.join("log")] {
            fs::create_dir(directory)?;
        }
        Ok(places)
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The event lines of all candidates, a file each, and of kills: what `bellwether audit` reads.
    pub fn all_events(&self) -> PathBuf {
        self.root.join("events")
    }

    /// Removes what candidates needed to reach the store, which may hold credentials.
    pub fn remove_credentials(&self) {
        // Where it cannot be removed, nobody else can read it.
        let _ = fs::remove_dir_all(self.ways());
    }

    fn ways(&self) -> PathBuf {
        self.root.join("ways")
    }

    pub(crate) fn events(&self, candidate: &str) -> PathBuf {
        self.all_events().join(format!("{candidate}.jsonl"))
    }

    pub(crate) fn kills(&self) -> PathBuf {
        self.all_events().join("kills.jsonl")
    }

    pub(crate) fn log(&self, candidate: &str) -> PathBuf {
        self.root.join("log").join(format!("{candidate}.log"))
    }

    /// How far the wall clock of a candidate is off.
    pub(crate) fn clock(&self, candidate: &str) -> PathBuf {
        self.root.join("log").join(format!("{candidate}.clock"))
    }

    pub(crate) fn witness(&self) -> PathBuf {
        self.root.join("witness")
    }

    /// Makes a directory for what a candidate needs to reach the store.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn of_candidate(&self, candidate: &str) -> io::Result<PathBuf> {
        let directory = self.ways().join(candidate);
        fs::create_dir(&directory)?;
        Ok(directory)
    }
}
