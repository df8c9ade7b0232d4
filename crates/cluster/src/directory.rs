//! A node's data directory: who holds it, and whose it is.
//!
//! ```text
//! LOCK            held by the process that uses the directory; a second one refuses to start
//! IDENTITY.json   format, node id, name, the phase of the formation, and a checksum of them
//! raft.redb       vote and log, the engine's
//! snap/           snapshots, the engine's
//! archive/        what was here before the node got another id; never read, never deleted
//! ```
//!
//! Owns the first two and the last. Every change of IDENTITY.json is on disk, directory entry included, before the call returns: a consent
//! that a crash could undo would be given twice. An identity that does not match its checksum is refused and left as it is: one bit makes
//! another node of a node, or another cluster of a cluster.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ring::digest;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::error::{ClusterError, ErrorKind};
use crate::formation::Phase;
use crate::names::{ClusterId, NodeId, NodeName};

const LOCK: &str = "LOCK";
const IDENTITY: &str = "IDENTITY.json";
const TEMPORARY: &str = "IDENTITY.json.new";
const ARCHIVE: &str = "archive";
/// What belongs to one node id, and is put away with it.
const OF_ONE_NODE: [&str; 2] = [LOG, "snap"];
const LOG: &str = "raft.redb";
/// The layout of this directory. A program that finds a higher one does not touch it.
const FORMAT: u32 = 1;
/// More than any identity has: a cluster of a hundred voters stays below it.
const IDENTITY_MAX_BYTES: u64 = 1 << 20;

/// An open data directory. Nobody else uses it while this lives.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    identity: Identity,
    _lock: File,
}

/// Who a data directory belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    format: u32,
    /// The node.
    #[serde(with = "hex_id")]
    pub node: NodeId,
    /// Its name.
    pub name: NodeName,
    /// What belonged to another node id is still to be put away: the process ended in the middle of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    putting_away: Option<String>,
    /// The directory is about to become one of another cluster, by hand: what is on disk may be of either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recovering: Option<Recovering>,
    /// What it knows of clusters.
    #[serde(flatten)]
    pub phase: Phase,
}

/// What IDENTITY.json holds.
#[derive(Serialize, Deserialize)]
struct Written {
    /// SHA-256 of the identity as JSON without white space, in hexadecimal digits. How the file itself is laid out does not count.
    checksum: String,
    #[serde(flatten)]
    identity: Identity,
}

/// What a recovery makes of a directory. Written down before it begins, so that it can be ended after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recovering {
    /// The cluster that comes out of it.
    pub(crate) to: ClusterId,
    /// How often the cluster has been recovered by then.
    pub(crate) generation: u32,
    /// Where the node is reached, as its log will say.
    pub(crate) address: String,
}

impl DataDirectory {
    /// Opens the directory of this node, and makes it if there is none. `drawn` becomes the node id of a new one.
    ///
    /// # Errors
    /// When another process uses it, when it is of another node or another format, and when it cannot be read or written.
    pub fn open(path: &Path, name: &NodeName, drawn: NodeId) -> Result<DataDirectory, ClusterError> {
        fs::create_dir_all(path).map_err(|error| unusable(path, "make the data directory", &error))?;
        let lock = lock(path)?;
        let identity = match read(path)? {
            Some(identity) => identity,
            None if fs::exists(path.join(LOG)).unwrap_or(true) => {
                return Err(ClusterError::corrupt(format!(
                    "{} has a Raft log but no {IDENTITY}: nobody knows whose it is; restore the file, or move the directory away and \
                     start with an empty one",
                    path.display()
                )));
            }
            None => Identity::new(drawn, name.clone()),
        };
        if identity.name != *name {
            return Err(ClusterError::invalid(format!(
                "{} belongs to the node {}, and this one is {name}: give every node a directory of its own",
                path.display(),
                identity.name
            )));
        }
        if identity.recovering.is_some() {
            return Err(ClusterError::new(
                ErrorKind::Refused,
                format!(
                    "the recovery of {} has not ended: run `bellwether recover` on it again",
                    path.display()
                ),
            ));
        }
        let mut directory = DataDirectory { path: path.to_owned(), identity: identity.clone(), _lock: lock };
        // A new one is on disk before anybody hears of its node id; of an old one, this shows that the disk can be written.
        directory.write(identity)?;
        directory.put_away()?;
        directory.check_log()?;
        Ok(directory)
    }

    /// Opens a directory that is there, whosever it is, and changes nothing.
    ///
    /// # Errors
    /// When there is none, when another process uses it, and when it cannot be read.
    #[cfg(feature = "openraft")]
    pub(crate) fn open_existing(path: &Path) -> Result<DataDirectory, ClusterError> {
        let none = || {
            ClusterError::invalid(format!(
                "{} is not the data directory of a node: it has no {IDENTITY}",
                path.display()
            ))
        };
        read(path)?.ok_or_else(none)?;
        let lock = lock(path)?;
        // Again: before it was locked, somebody may have changed it.
        let identity = read(path)?.ok_or_else(none)?;
        Ok(DataDirectory { path: path.to_owned(), identity, _lock: lock })
    }

    /// Storage is made before a node is bound. So a node that is bound has a log, and one that is not has nothing that counts.
    fn check_log(&mut self) -> Result<(), ClusterError> {
        let has_log = fs::exists(self.path.join(LOG))
            .map_err(|error| unusable(&self.path, "look for raft.redb", &error))?;
        match &self.identity.phase {
            Phase::Bound { cluster, .. } if !has_log => Err(ClusterError::corrupt(format!(
                "{} belongs to a member of cluster {cluster}, but its raft.redb is gone, and with it how the member has voted: restore \
                 the file, or move the directory away and let the node join again with an empty one",
                self.path.display()
            ))),
            Phase::Unbound { .. } | Phase::Removed { .. } if has_log => {
                let unused = format!("{}-unused", self.identity.node);
                self.write(Identity { putting_away: Some(unused), ..self.identity.clone() })?;
                self.put_away()
            }
            _ => Ok(()),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who it belongs to.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Changes the phase. It is on disk when this returns.
    ///
    /// # Errors
    /// When it could not be written. What the disk says then is unknown, so the process has to end.
    pub fn set_phase(&mut self, phase: Phase) -> Result<(), ClusterError> {
        self.write(Identity { phase, ..self.identity.clone() })
    }

    /// Puts away everything that belongs to the node id of this directory, and goes on with another. Nothing is deleted.
    ///
    /// # Errors
    /// As [`set_phase`](DataDirectory::set_phase).
    pub fn start_over(&mut self, drawn: NodeId, phase: Phase) -> Result<(), ClusterError> {
        let putting_away = Some(self.identity.node.to_string());
        // The new id comes first. The old one without its log would be a member that forgot how it voted.
        self.write(Identity { node: drawn, phase, putting_away, ..self.identity.clone() })?;
        self.put_away()
    }

    /// What an interrupted recovery was to make.
    #[cfg(feature = "openraft")]
    pub(crate) fn recovering(&self) -> Option<&Recovering> {
        self.identity.recovering.as_ref()
    }

    /// Notes that a recovery begins, or that it does not take place after all.
    #[cfg(feature = "openraft")]
    pub(crate) fn set_recovering(&mut self, recovering: Option<Recovering>) -> Result<(), ClusterError> {
        self.write(Identity { recovering, ..self.identity.clone() })
    }

    /// Notes that the storage is that of the recovered cluster.
    #[cfg(feature = "openraft")]
    pub(crate) fn recovered(&mut self) -> Result<(), ClusterError> {
        let Some(Recovering { to, .. }) = self.identity.recovering else { return Ok(()) };
        let phase = Phase::Bound { cluster: to, initial: None };
        self.write(Identity { phase, recovering: None, ..self.identity.clone() })
    }

    fn put_away(&mut self) -> Result<(), ClusterError> {
        let Some(label) = &self.identity.putting_away else { return Ok(()) };
        let failed = |error: io::Error| unusable(&self.path, "archive the data directory", &error);
        let archive = unused_path(&self.path.join(ARCHIVE), label);
        fs::create_dir_all(&archive).map_err(failed)?;
        for name in OF_ONE_NODE {
            match fs::rename(self.path.join(name), archive.join(name)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        // From the inside out: what was moved must not hang on a directory that a crash forgets.
        for directory in [&archive, &self.path.join(ARCHIVE), &self.path] {
            sync(directory).map_err(failed)?;
        }
        self.write(Identity { putting_away: None, ..self.identity.clone() })
    }

    fn write(&mut self, identity: Identity) -> Result<(), ClusterError> {
        let failed = |error: io::Error| unusable(&self.path, "write IDENTITY.json", &error);
        let text = print(&identity).map_err(|error| failed(error.into()))?;
        let temporary = self.path.join(TEMPORARY);
        let write = || -> io::Result<()> {
            let mut file = File::create(&temporary)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&temporary, self.path.join(IDENTITY))?;
            sync(&self.path)
        };
        write().map_err(failed)?;
        self.identity = identity;
        Ok(())
    }
}

impl Identity {
    pub(crate) fn new(node: NodeId, name: NodeName) -> Identity {
        Identity { format: FORMAT, node, name, putting_away: None, recovering: None, phase: Phase::FRESH }
    }
}

/// A folder of this name, or with a number behind it, that has none of the files yet.
fn unused_path(archive: &Path, label: &str) -> PathBuf {
    let is_unused = |path: &PathBuf| OF_ONE_NODE.iter().all(|name| !path.join(name).exists());
    let numbered = (2..).map(|number| archive.join(format!("{label}-{number}")));
    let mut all = std::iter::once(archive.join(label)).chain(numbered);
    all.find(is_unused).unwrap_or_else(|| archive.join(label))
}

fn lock(path: &Path) -> Result<File, ClusterError> {
    let failed = |error: io::Error| unusable(path, "open LOCK", &error);
    let file =
        OpenOptions::new().create(true).truncate(false).write(true).open(path.join(LOCK)).map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(ClusterError::invalid(format!(
            "another process uses {}: end it, or give this node a directory of its own",
            path.display()
        ))),
        Err(error) => Err(failed(error.into())),
    }
}

fn read(path: &Path) -> Result<Option<Identity>, ClusterError> {
    let file = path.join(IDENTITY);
    let mut text = Vec::new();
    match File::open(&file) {
        Ok(open) => open
            .take(IDENTITY_MAX_BYTES)
            .read_to_end(&mut text)
            .map_err(|error| unusable(path, "read IDENTITY.json", &error))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(path, "read IDENTITY.json", &error)),
    };
    let unreadable = |what: String| {
        ClusterError::corrupt(format!(
            "{} cannot be read: {what}; restore it, or move the data directory away and let the node join again with an empty one",
            file.display()
        ))
    };
    parse(&text).map(Some).map_err(unreadable)
}

/// The identity in IDENTITY.json, or why there is none.
pub(crate) fn parse(text: &[u8]) -> Result<Identity, String> {
    let format: Format = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if format.format != FORMAT {
        return Err(format!("it has format {}, and this program knows {FORMAT}", format.format));
    }
    let written: Written = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if written.checksum != checksum(&written.identity).map_err(|error| error.to_string())? {
        return Err("its checksum does not match, so something in it has changed".to_owned());
    }
    Ok(written.identity)
}

pub(crate) fn print(identity: &Identity) -> serde_json::Result<Vec<u8>> {
    let written = Written { checksum: checksum(identity)?, identity: identity.clone() };
    let mut text = serde_json::to_vec_pretty(&written)?;
    text.push(b'\n');
    Ok(text)
}

fn checksum(identity: &Identity) -> serde_json::Result<String> {
    let digest = digest::digest(&digest::SHA256, &serde_json::to_vec(identity)?);
    Ok(digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[derive(Deserialize)]
struct Format {
    format: u32,
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn unusable(path: &Path, what: &str, error: &io::Error) -> ClusterError {
    let sentence = format!("cannot {what} in {}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ClusterError::new(
            ErrorKind::PermissionDenied,
            format!("{sentence}; the directory has to belong to the user that runs the node"),
        ),
        _ => ClusterError::storage(sentence),
    }
}

/// As people see it everywhere else.
mod hex_id {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::names::NodeId;

    pub(super) fn serialize<S: Serializer>(id: &NodeId, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<NodeId, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
