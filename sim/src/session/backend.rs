//! The backend of a process in a world with a session store: the real session lease, driven by the world.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bellwether_backend::{Backend, Forward, Notices, SessionLease};
use bellwether_core::ElectionName;
use futures_util::{StreamExt, stream};

use super::store::{SharedSessions, SimStore};
use super::wire::Wire;
use crate::connection::lock;
use crate::key::ElectionKey;

/// Elections on the world's server.
pub struct SimSessions {
    lease: SessionLease<SimStore>,
    shared: Arc<SharedSessions>,
}

impl SimSessions {
    /// A process that has not connected yet.
    pub fn new(wire: Wire, ttl: Duration) -> SimSessions {
        let store = SimStore::new(wire, ttl);
        let shared = Arc::clone(&store.0);
        SimSessions { lease: SessionLease::new(store), shared }
    }
}

impl Forward for SimSessions {
    fn inner(&self) -> &dyn Backend {
        &self.lease
    }

    fn follow(&self, on: &ElectionName) {
        lock(&self.shared.wire.connection).follow(ElectionKey::of(on));
        self.lease.follow(on);
    }

    fn unfollow(&self, on: &ElectionName) {
        lock(&self.shared.wire.connection).unfollow(ElectionKey::of(on));
        self.lease.unfollow(on);
    }

    fn signals(&self) -> Notices {
        let (shared, mut signals) = (Arc::clone(&self.shared), self.lease.signals());
        Box::pin(stream::poll_fn(move |context| {
            shared.run(context.waker());
            match signals.poll_next_unpin(context) {
                Poll::Ready(notice) => Poll::Ready(notice),
                Poll::Pending => Poll::Pending,
            }
        }))
    }
}
