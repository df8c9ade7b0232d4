//! News of everything that is followed: the link, the watches, and what has to be looked at, in the order that matters.
//!
//! That the link is back is told before anything that came over it, because whoever listens judges by it how old its knowledge
//! may be.

use std::pin::Pin;
use std::sync::Arc;

use bellwether_backend::{Change, Changes};
use futures_util::stream::{self, SelectAll};
use futures_util::{Stream, StreamExt};
use tokio::sync::watch;

use crate::connection::LinkState;
use crate::following::Following;
use crate::register::BucketStore;
use crate::watch::BucketWatch;

type BucketWatches = SelectAll<Pin<Box<dyn Stream<Item = Change<u64>> + Send>>>;

/// Until the stream is dropped.
pub(crate) fn changes(store: &Arc<BucketStore>) -> Changes<u64> {
    let following = Arc::clone(&store.following);
    let driver = ChangeStream {
        changed: following.changed(),
        link: store.connection.link(),
        told: LinkState::default(),
        announced: watch::Sender::new(0),
        watches: SelectAll::new(),
        store: Arc::clone(store),
        _ending: AbandonOnDrop(following),
    };
    Box::pin(stream::unfold(driver, |mut driver| async {
        let change = driver.next().await;
        Some((change, driver))
    }))
}

struct ChangeStream {
    store: Arc<BucketStore>,
    changed: watch::Receiver<u64>,
    link: watch::Receiver<LinkState>,
    /// What has been told of the link.
    told: LinkState,
    announced: watch::Sender<u64>,
    watches: BucketWatches,
    _ending: AbandonOnDrop,
}

struct AbandonOnDrop(Arc<Following>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.abandoned();
    }
}

impl ChangeStream {
    async fn next(&mut self) -> Change<u64> {
        loop {
            if let Some(change) = self.link_changed() {
                return change;
            }
            self.begin_watches();
            let following = Arc::clone(&self.store.following);
            tokio::select! {
                biased;
                _ = self.link.changed() => {}
                on = following.mail.take() => return Change::Look(on),
                _ = self.changed.changed() => {}
                Some(change) = self.watches.next(), if !self.watches.is_empty() => return change,
            }
        }
    }

    fn link_changed(&mut self) -> Option<Change<u64>> {
        let now = *self.link.borrow_and_update();
        if now.times > self.told.times {
            let again = self.told.times > 0;
            self.told = LinkState { up: true, ..now };
            self.announced.send_replace(now.times);
            if again {
                return Some(Change::Restored);
            }
        }
        if self.told.up && !now.up {
            self.told.up = false;
            return Some(Change::Doubt);
        }
        None
    }

    fn begin_watches(&mut self) {
        self.changed.borrow_and_update();
        for bucket in self.store.following.unwatched() {
            let watch = BucketWatch {
                bucket: self.store.bucket(&bucket),
                layout: Arc::clone(&self.store.layout),
                following: Arc::clone(&self.store.following),
                changed: self.store.following.changed(),
                announced: self.announced.subscribe(),
                open: None,
                failures: 0,
            };
            self.watches.push(Box::pin(stream::unfold(watch, |mut watch| async {
                let change = watch.next().await?;
                Some((change, watch))
            })));
        }
    }
}
