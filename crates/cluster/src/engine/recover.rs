//! Makes a cluster out of what is left of one: offline, by hand, when a majority is lost for good.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use openraft::EntryPayload;
use openraft::entry::RaftEntry;
use openraft::vote::RaftLeaderId;

use super::files::{sync_parent, unusable};
use super::log_file::{FILE, Head, LogFile, Owner, put};
use super::snapshots::Snapshots;
use super::types::{Command, Entry, LogId, Membership, StoredMembership, Vote, configuration, nodes};
use crate::engine::failure::Failure;
use crate::error::{ClusterError, ErrorKind};
use crate::member::{Configuration, Member};
use crate::names::{ClusterId, NodeId};

/// What a recovery is to make.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The data directory of the node that goes on. No process uses it.
    pub directory: PathBuf,
    /// That node.
    pub node: NodeId,
    /// The cluster that is lost.
    pub from: ClusterId,
    /// The cluster that comes out of it: a new id, so that members of the old one that return are turned away.
    pub to: ClusterId,
    /// The voters of the new cluster: this node, and any others with **empty** directories and new node ids.
    pub voters: Vec<Member>,
    /// How often the cluster has been recovered, this time included.
    pub generation: u32,
}

/// Turns the storage of one node into that of a new cluster with the same state.
///
/// Everything in this node's log counts as agreed: what was acknowledged may be among it, and nobody is left to say. What only lost nodes had
/// is lost. Run it on **one** node, the one with the longest log. Two recovered nodes would not agree on one past.
///
/// What was there before is copied to `archive/`. After a crash, it can be run again; run again when it is done, it changes nothing.
///
/// # Errors
/// When the storage is not that of this node and cluster, is damaged, in use, or cannot be written; and when the node is none of the voters.
pub fn recover(recovery: &Recovery) -> Result<(), ClusterError> {
    let Recovery { directory, node, from, to, voters, generation } = recovery;
    if !voters.iter().any(|voter| voter.node == *node) {
        return Err(ClusterError::invalid(format!(
            "node {node} has to be one of the voters: it has the state"
        )));
    }
    let path = directory.join(FILE);
    if !fs::exists(&path).map_err(|error| unusable(&path, "look for", &error))? {
        return Err(nothing_there(&path));
    }
    let (file, head, entries) = LogFile::read(path)?;
    let after = Owner { node: *node, cluster: *to, generation: *generation };
    if head.owner == after {
        return Ok(());
    }
    if head.owner.node != *node || head.owner.cluster != *from || head.owner.generation >= *generation {
        return Err(ClusterError::new(
            ErrorKind::Refused,
            format!(
                "{} belongs to node {} of cluster {}, recovered {} times: name these, and a higher generation",
                file.path().display(),
                head.owner.node,
                head.owner.cluster,
                head.owner.generation
            ),
        ));
    }
    // The state has to be whole before anything is built on it.
    let snapshot = Snapshots::open(directory, *node, Failure::none_yet())?.newest()?;
    let snapshot = snapshot.and_then(|snapshot| snapshot.meta.last_log_id);
    archive(directory, *from, head.owner.generation)
        .map_err(|error| unusable(directory, "archive", &error))?;
    let last = entries.last().map(|entry| entry.log_id).max(head.purged).max(snapshot);
    let (new, head) = chosen(after, &head, last, voters)?;
    let put = |entry: &Entry| put(entry).map_err(|error| unusable(directory, "write to", &error));
    let mut edits = new.iter().map(put).collect::<Result<Vec<_>, _>>()?;
    let gap = snapshot.filter(|id| entries.last().is_none_or(|entry| entry.log_id.index < id.index));
    let head = match gap {
        // The snapshot goes further than the log: a crash came before the log was purged.
        Some(id) => {
            edits.insert(0, super::log_file::Edit::Purge(id.index));
            Head { purged: Some(id), ..head }
        }
        None => head,
    };
    file.commit(&edits, &head)
        .map_err(|error| ClusterError::storage(format!("cannot write {}: {error}", file.path().display())))
}

/// What the storage of a node says.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) node: NodeId,
    pub(crate) cluster: ClusterId,
    pub(crate) generation: u32,
    /// The last entry that it has.
    pub(crate) last_index: u64,
    /// The members, as far as it knows.
    pub(crate) configuration: Configuration,
}

/// Reads and verifies the storage of a node that no process uses.
pub(crate) fn look(directory: &Path) -> Result<Found, ClusterError> {
    let path = directory.join(FILE);
    if !fs::exists(&path).map_err(|error| unusable(&path, "look for", &error))? {
        return Err(nothing_there(&path));
    }
    let (_, head, entries) = LogFile::read(path)?;
    let snapshot = Snapshots::open(directory, head.owner.node, Failure::none_yet())?.newest()?;
    let in_log = entries.iter().rev().find_map(|entry| match &entry.payload {
        EntryPayload::Membership(members) => Some(StoredMembership::new(Some(entry.log_id), members.clone())),
        _ => None,
    });
    let in_snapshot = || snapshot.as_ref().map(|snapshot| snapshot.meta.last_membership.clone());
    let included = snapshot.as_ref().and_then(|snapshot| snapshot.meta.last_log_id);
    let last = entries.last().map(|entry| entry.log_id).max(head.purged).max(included);
    Ok(Found {
        node: head.owner.node,
        cluster: head.owner.cluster,
        generation: head.owner.generation,
        last_index: last.map_or(0, |id| id.index),
        configuration: in_log.or_else(in_snapshot).map(|stored| configuration(&stored)).unwrap_or_default(),
    })
}

fn nothing_there(path: &Path) -> ClusterError {
    ClusterError::invalid(format!("{} does not exist: there is no cluster to recover", path.display()))
}

/// Two more entries, committed, under a term that is above every one that this node knows: the chosen voters, and the generation, which
/// the voters with empty directories learn from the log alone.
fn chosen(
    owner: Owner,
    head: &Head,
    last: Option<LogId>,
    voters: &[Member],
) -> Result<([Entry; 2], Head), ClusterError> {
    let node = owner.node.number();
    let terms = [head.vote.map(|vote| vote.leader_id.term), last.map(|id| id.leader_id.term)];
    let term = terms.into_iter().flatten().max().unwrap_or(0) + 1;
    let vote = Vote::new(term, node);
    let first = last.map_or(0, |id| id.index + 1);
    let [id, last] = [first, first + 1].map(|index| LogId::new(RaftLeaderId::new(term, node), index));
    let nodes = nodes(voters);
    let membership = Membership::new(vec![nodes.keys().copied().collect()], nodes);
    let membership = membership.map_err(|error| ClusterError::invalid(error.to_string()))?;
    let head =
        Head { owner, vote: Some(vote), committed: Some(last), last: Some(last.index), ..head.clone() };
    let recovered = Entry::new_normal(last, Command::Recovered(owner.generation));
    Ok(([Entry::new_membership(id, membership), recovered], head))
}

/// A copy of the storage as it was. An interrupted copy is made again under the same name.
fn archive(directory: &Path, from: ClusterId, generation: u32) -> io::Result<()> {
    let archive = directory.join("archive").join(format!("{from}-generation-{generation}"));
    fs::create_dir_all(archive.join("snap"))?;
    copy(&directory.join(FILE), &archive.join(FILE))?;
    for snapshot in fs::read_dir(directory.join("snap"))? {
        let snapshot = snapshot?;
        if snapshot.file_type()?.is_file() {
            copy(&snapshot.path(), &archive.join("snap").join(snapshot.file_name()))?;
        }
    }
    sync_parent(&archive)?;
    sync_parent(&directory.join("archive"))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    fs::File::open(to)?.sync_all()?;
    sync_parent(to)
}
