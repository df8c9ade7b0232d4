//! The backend of a process in a world with a session store: the real session lease, driven by the world.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bellwether_backend::{Backend, Capabilities, Fut, Notices, Past, SessionLease};
use bellwether_core::{Bid, Boot, Candidate, ElectionName, Error, Grant, Outcome, Parting, Request, Seen};
use futures_util::{StreamExt, stream};

use super::store::{Shared, SimStore};
use super::wire::Wire;
use crate::connection::lock;

/// Elections on the world's server.
pub struct SimSessions {
    lease: SessionLease<SimStore>,
    shared: Arc<Shared>,
}

impl SimSessions {
    /// A process that has not connected yet.
    pub fn new(wire: Wire, ttl: Duration) -> SimSessions {
        let store = SimStore::new(wire, ttl);
        let shared = Arc::clone(&store.0);
        SimSessions { lease: SessionLease::new(store), shared }
    }
}

impl Backend for SimSessions {
    fn name(&self) -> &'static str {
        self.lease.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.lease.capabilities()
    }

    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        self.lease.claim(on, bid)
    }

    fn renew<'a>(&'a self, sent: Boot, held: &'a [(ElectionName, Grant)]) -> Fut<'a, Vec<Outcome<Grant>>> {
        self.lease.renew(sent, held)
    }

    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a Parting,
    ) -> Fut<'a, Outcome<()>> {
        self.lease.release(on, grant, how)
    }

    fn observe<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Seen, Error>> {
        self.lease.observe(on)
    }

    fn request<'a>(&'a self, on: &'a ElectionName, what: &'a Request) -> Fut<'a, Outcome<()>> {
        self.lease.request(on, what)
    }

    fn follow(&self, on: &ElectionName, interested: bool) {
        lock(&self.shared.wire.connection).followed = interested;
        self.lease.follow(on, interested);
    }

    fn retire(&self, on: &ElectionName, who: &Candidate) {
        self.lease.retire(on, who);
    }

    fn signals(&self) -> Notices {
        let (shared, mut signals) = (Arc::clone(&self.shared), self.lease.signals());
        Box::pin(stream::poll_fn(move |context| {
            shared.run();
            match signals.poll_next_unpin(context) {
                Poll::Ready(notice) => Poll::Ready(notice),
                Poll::Pending => Poll::Pending,
            }
        }))
    }

    fn remember<'a>(&'a self, on: &'a ElectionName, past: &'a Past) -> Fut<'a, Result<(), Error>> {
        self.lease.remember(on, past)
    }

    fn history<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Vec<Past>, Error>> {
        self.lease.history(on)
    }

    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, Error>> {
        self.lease.elections()
    }
}
