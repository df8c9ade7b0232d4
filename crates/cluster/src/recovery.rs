//! The data directory of a node that is left of a cluster becomes that of a new one, offline and by hand.
//!
//! Two files name the cluster, and no disk writes two files at once. So what is to be made is written down first:
//!
//! ```text
//! 1. IDENTITY.json   recovering, to cluster Y, generation g    from here on, the node does not start
//! 2. raft.redb       cluster Y, generation g, one voter        one commit; a copy of what was there is in archive/
//! 3. IDENTITY.json   bound to Y                                from here on, it starts
//! ```
//!
//! After a crash, the same is done again from where it ended, and with the same cluster id.

use std::path::Path;

use crate::directory::{DataDirectory, Identity, Recovering};
use crate::engine::{Found, Recovery, look, recover};
use crate::error::{ClusterError, ErrorKind};
use crate::formation::Phase;
use crate::member::{Configuration, Member};
use crate::names::ClusterId;

/// The data directory of a node whose cluster is lost. No process uses it while this lives.
///
/// The node goes on as the only voter, with all that its log has; others join it with empty directories. A voter that is not this node
/// would have to hold state, and two nodes of a lost cluster do not agree on one past.
#[derive(Debug)]
pub struct Survivor {
    directory: DataDirectory,
    found: Found,
    from: ClusterId,
}

/// What came out of a recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The new cluster.
    pub cluster: ClusterId,
    /// How often it has been recovered, this time included.
    pub generation: u32,
    /// Its only member.
    pub member: Member,
}

impl Survivor {
    /// Opens the directory, and reads and verifies what is in it. Changes nothing.
    ///
    /// # Errors
    /// When it is none of a member of a cluster, when a process uses it, and when something in it is damaged.
    pub fn open(path: &Path) -> Result<Survivor, ClusterError> {
        let directory = DataDirectory::open_existing(path)?;
        let Phase::Bound { cluster: from, .. } = directory.identity().phase else {
            return Err(ClusterError::invalid(format!(
                "{} belongs to no member of a cluster, so there is nothing to recover: start the node, and it joins",
                path.display()
            )));
        };
        let found = look(path)?;
        let expected = directory.recovering().map(|recovering| recovering.to);
        if found.node != directory.identity().node
            || (found.cluster != from && Some(found.cluster) != expected)
        {
            return Err(ClusterError::corrupt(format!(
                "IDENTITY.json and raft.redb in {} are of different nodes or clusters: restore both from the same copy",
                path.display()
            )));
        }
        Ok(Survivor { directory, found, from })
    }

    /// Whose directory it is.
    pub fn identity(&self) -> &Identity {
        self.directory.identity()
    }

    /// The cluster that is lost.
    pub fn from(&self) -> ClusterId {
        self.from
    }

    /// The last entry that the node has: what only others had is lost.
    pub fn last_index(&self) -> u64 {
        self.found.last_index
    }

    /// The members of the lost cluster, as far as the node knows.
    pub fn members(&self) -> &Configuration {
        &self.found.configuration
    }

    /// The cluster that an interrupted recovery was to make.
    pub fn interrupted(&self) -> Option<ClusterId> {
        self.directory.recovering().map(|recovering| recovering.to)
    }

    /// Writes down that the directory becomes one of cluster `drawn`, or of the one that an interrupted recovery chose; returns which. The node
    /// is reached at `address`, or where it was before.
    ///
    /// # Errors
    /// When no address is known, and when it could not be written.
    pub fn begin(&mut self, drawn: ClusterId, address: Option<String>) -> Result<ClusterId, ClusterError> {
        if let Some(to) = self.interrupted() {
            return Ok(to);
        }
        let known =
            self.found.configuration.member(self.found.node).map(|(member, _)| member.address.clone());
        let address = address.or(known).filter(|address| !address.is_empty()).ok_or_else(|| {
            ClusterError::invalid(
                "the log does not say where this node is reached: name it with --advertise HOST:PORT",
            )
        })?;
        let recovering = Recovering { to: drawn, generation: self.found.generation + 1, address };
        self.directory.set_recovering(Some(recovering))?;
        Ok(drawn)
    }

    /// The recovery does not take place: the directory is what it was. Only before [`finish`](Survivor::finish) was called.
    ///
    /// # Errors
    /// When the storage is of the new cluster already, and when it could not be written.
    pub fn abandon(mut self) -> Result<(), ClusterError> {
        if self.found.cluster != self.from {
            return Err(ClusterError::new(ErrorKind::Refused, "this node is recovered already"));
        }
        self.directory.set_recovering(None)
    }

    /// Does what [`begin`](Survivor::begin) wrote down.
    ///
    /// # Errors
    /// When it was not begun, and when the storage is damaged or could not be written. It can be done again.
    pub fn finish(mut self) -> Result<Recovered, ClusterError> {
        let recovering = self.directory.recovering().cloned();
        let recovering = recovering.ok_or_else(|| ClusterError::invalid("no recovery was begun"))?;
        let Recovering { to, generation, address } = recovering;
        let name = self.identity().name.clone();
        let member = Member { node: self.found.node, name, address };
        recover(&Recovery {
            directory: self.directory.path().to_owned(),
            node: member.node,
            from: self.from,
            to,
            voters: vec![member.clone()],
            generation,
        })?;
        self.directory.recovered()?;
        Ok(Recovered { cluster: to, generation, member })
    }
}
