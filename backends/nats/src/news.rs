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

use crate::connection::Link;
use crate::following::Following;
use crate::register::Store;
use crate::watch::Watch;

type Watches = SelectAll<Pin<Box<dyn Stream<Item = Change<u64>> + Send>>>;

/// Until the stream is dropped.
pub(crate) fn changes(store: &Arc<Store>) -> Changes<u64> {
    let following = Arc::clone(&store.following);
    let driver = Driver {
        changed: following.changed(),
        link: store.connection.link(),
        told: Link::default(),
        announced: watch::Sender::new(0),
        watches: SelectAll::new(),
        store: Arc::clone(store),
        _ending: Ending(following),
    };
    Box::pin(stream::unfold(driver, |mut driver| async {
        let change = driver.next().await;
        Some((change, driver))
    }))
}

struct Driver {
    store: Arc<Store>,
    changed: watch::Receiver<u64>,
    link: watch::Receiver<Link>,
    /// What has been told of the link.
    told: Link,
    announced: watch::Sender<u64>,
    watches: Watches,
    _ending: Ending,
}

struct Ending(Arc<Following>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.abandoned();
    }
}

impl Driver {
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
            self.told = Link { up: true, times: now.times };
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
            let watch = Watch {
                bucket: self.store.bucket(&bucket),
                shape: Arc::clone(&self.store.shape),
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
