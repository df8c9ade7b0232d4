//! News of everything that is followed: the watches, and what has to be looked at.

use std::pin::Pin;
use std::sync::Arc;

use bellwether_backend::{Change, Changes};
use futures_util::stream::{self, SelectAll};
use futures_util::{Stream, StreamExt};
use tokio::sync::watch;

use crate::following::Following;
use crate::lease_object::LeaseVersion;
use crate::register::LeaseStore;
use crate::watch::LeaseWatch;

/// Until the stream is dropped.
pub(crate) fn changes(store: &Arc<LeaseStore>) -> Changes<LeaseVersion> {
    let mut changed = store.following.changed();
    // What was followed before counts, too.
    changed.mark_changed();
    let driver = ChangeStream {
        changed,
        watches: SelectAll::new(),
        store: Arc::clone(store),
        _ending: AbandonOnDrop(Arc::clone(&store.following)),
    };
    Box::pin(stream::unfold(driver, |mut driver| async {
        let change = driver.next().await;
        Some((change, driver))
    }))
}

struct ChangeStream {
    store: Arc<LeaseStore>,
    changed: watch::Receiver<u64>,
    watches: SelectAll<Pin<Box<dyn Stream<Item = Change<LeaseVersion>> + Send>>>,
    _ending: AbandonOnDrop,
}

struct AbandonOnDrop(Arc<Following>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.abandoned();
    }
}

impl ChangeStream {
    async fn next(&mut self) -> Change<LeaseVersion> {
        loop {
            tokio::select! {
                on = self.store.following.mail.take() => return Change::Look(on),
                // Not for every change of a Lease: this looks at everything that is followed.
                _ = self.changed.changed() => self.watch_more(),
                Some(change) = self.watches.next(), if !self.watches.is_empty() => return change,
            }
        }
    }

    fn watch_more(&mut self) {
        for scope in self.store.following.unwatched() {
            let watch = LeaseWatch::new(scope, Arc::clone(&self.store));
            self.watches.push(Box::pin(stream::unfold(watch, |mut watch| async {
                let change = watch.next().await?;
                Some((change, watch))
            })));
        }
    }
}
