//! Where the latest epoch is kept between requests, and between starts.

use std::pin::Pin;
#[cfg(feature = "file")]
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

use bellwether_core::Epoch;

#[cfg(feature = "file")]
use crate::Failure;
use crate::{FenceError, Fenced};

/// The answer of a store.
pub type Raising = Pin<Box<dyn Future<Output = Result<(), FenceError>> + Send>>;

/// Keeps the latest epoch of one election.
pub trait EpochStore: Send + Sync + 'static {
    /// Remembers that this epoch has asked, unless a later one has: then it is fenced. An equal epoch may ask any number of times. When
    /// this is done, no earlier epoch is ever admitted by this store again.
    fn raise(&self, epoch: Epoch) -> Raising;
}

/// In this process alone: a restart forgets it.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Epoch>);

impl EpochStore for Memory {
    fn raise(&self, epoch: Epoch) -> Raising {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let raised = if epoch < *latest {
            Err(Fenced { mine: epoch, latest: *latest }.into())
        } else {
            *latest = epoch;
            Ok(())
        };
        Box::pin(std::future::ready(raised))
    }
}

/// In a [fenced file](crate::file): it outlives the process.
#[cfg(feature = "file")]
#[derive(Debug)]
pub struct DirectoryStore(Arc<crate::file::FencedFile>);

#[cfg(feature = "file")]
impl DirectoryStore {
    /// In that file, which is for this alone.
    pub fn new(file: crate::file::FencedFile) -> DirectoryStore {
        DirectoryStore(Arc::new(file))
    }
}

#[cfg(feature = "file")]
impl EpochStore for DirectoryStore {
    fn raise(&self, epoch: Epoch) -> Raising {
        let file = Arc::clone(&self.0);
        Box::pin(async move {
            let raised = tokio::task::spawn_blocking(move || file.write(epoch, b"")).await;
            raised.unwrap_or_else(|error| {
                let sentence = "the thread that writes the epoch has ended";
                let error =
                    bellwether_core::StoreError::new(bellwether_core::ErrorKind::Bug, "file", sentence)
                        .caused_by(error);
                Err(Failure::Store(error).into())
            })
        })
    }
}
