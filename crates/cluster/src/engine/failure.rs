//! The first failure of the disk, which is also the last thing that the engine does with it.
//!
//! After a failed write or fsync nobody knows what the disk has: the kernel may have dropped the pages and say "done" the next time. So no
//! part of the engine tries again. The first failure is noted here, everything asked afterwards fails, and the process has to end.

use std::io;
use std::sync::Arc;

use tokio::sync::watch;

/// Shared by all parts of one engine's storage.
#[derive(Clone, Debug)]
pub(super) struct Failure(Arc<watch::Sender<Option<String>>>);

impl Failure {
    pub(super) fn none_yet() -> Failure {
        Failure(Arc::new(watch::Sender::new(None)))
    }

    /// Notes why the engine cannot go on. Only the first reason is kept: later ones follow from it.
    pub(super) fn note(&self, why: &str) -> io::Error {
        self.0.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert_with(|| why.to_owned());
            is_first
        });
        self.check().err().unwrap_or_else(|| io::Error::other(why.to_owned()))
    }

    pub(super) fn check(&self) -> io::Result<()> {
        self.0.borrow().as_ref().map_or(Ok(()), |why| Err(io::Error::other(why.clone())))
    }

    pub(super) fn watch(&self) -> watch::Receiver<Option<String>> {
        self.0.subscribe()
    }
}
