//! Files that are either whole or not there, and what to say about those that are neither.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::error::ClusterError;

/// Gives a file, complete under its temporary name, its own. Afterwards a crash cannot undo that.
pub(super) fn publish(temporary: &Path, path: &Path) -> io::Result<()> {
    File::open(temporary)?.sync_all()?;
    fs::rename(temporary, path)?;
    sync_parent(path)
}

/// Writes the directory entry of a file to disk.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

/// Removes what an interrupted attempt left under a temporary name.
pub(super) fn start_over(temporary: &Path) -> io::Result<()> {
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn unusable(path: &Path, what: &str, error: &io::Error) -> ClusterError {
    ClusterError::storage(format!("cannot {what} {}: {error}", path.display()))
}

pub(super) fn damaged(path: &Path, what: &str) -> ClusterError {
    ClusterError::corrupt(format!(
        "{} is damaged: {what}; move the data directory away and let the node join again with an empty one",
        path.display()
    ))
}
