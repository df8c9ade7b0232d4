//! The contract, by the parts beside this one. Calls that change anything run to their end, whatever becomes of their caller.

use std::sync::Arc;

use bellwether_core::{
    Bid, Boot, Candidate, ElectionName, Grant, Outcome, ReleaseOptions, Request, Seen, StoreError,
};
use futures_util::stream;

use super::{SessionLease, Shared};
use crate::session_store::SessionStore;
use crate::{
    Backend, Capabilities, Creation, Discarded, Finding, Followers, Fut, Notices, Past, Probing, once,
};

impl<S: SessionStore> Backend for SessionLease<S> {
    fn name(&self) -> &'static str {
        self.0.store.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.store.capabilities()
    }

    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        let call = Arc::clone(&self.0).claim(on.clone(), bid.clone());
        Box::pin(async { self.0.store.finish(call).await.unwrap_or_else(Outcome::Unknown) })
    }

    fn renew<'a>(&'a self, on: &'a ElectionName, grant: &'a Grant, sent: Boot) -> Fut<'a, Outcome<Grant>> {
        let (shared, on, grant) = (Arc::clone(&self.0), on.clone(), grant.clone());
        let call = async move { shared.renew(&on, &grant, sent).await };
        Box::pin(async { self.0.store.finish(call).await.unwrap_or_else(Outcome::Unknown) })
    }

    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a ReleaseOptions,
    ) -> Fut<'a, Outcome<()>> {
        let call = Arc::clone(&self.0).release(on.clone(), grant.clone(), how.clone());
        Box::pin(async { self.0.store.finish(call).await.unwrap_or_else(Outcome::Unknown) })
    }

    fn observe<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Seen, StoreError>> {
        Box::pin(async move { self.0.look(on).await.map(|looked| looked.seen) })
    }

    fn followers<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Option<Followers>, StoreError>> {
        Box::pin(async move {
            let pair = self.0.pair().await?;
            self.0.store.followers(&pair.sessions(), on).await
        })
    }

    fn request<'a>(&'a self, on: &'a ElectionName, what: &'a Request) -> Fut<'a, Outcome<()>> {
        let call = Arc::clone(&self.0).request(on.clone(), what.clone());
        Box::pin(async { self.0.store.finish(call).await.unwrap_or_else(Outcome::Unknown) })
    }

    fn follow(&self, on: &ElectionName) {
        let Ok(key) = self.0.store.key(on) else { return };
        self.0.known().of(key, on).followers += 1;
        if self.0.current().is_none() {
            let shared = Arc::clone(&self.0);
            // The claim that follows says what is wrong; this only saves it the wait.
            self.0.store.spawn(Box::pin(async move { drop(shared.pair().await) }));
        }
    }

    fn unfollow(&self, on: &ElectionName) {
        let Ok(key) = self.0.store.key(on) else { return };
        let mut elections = self.0.known();
        let known = elections.of(key, on);
        known.followers = known.followers.saturating_sub(1);
        if known.followers == 0 {
            elections.forget(key);
            self.0.notices.forget(on);
        }
    }

    fn retire(&self, on: &ElectionName, who: &Candidate) {
        let Ok(key) = self.0.store.key(on) else { return };
        if let Some(known) = self.0.known().get_mut(key) {
            known.candidates.remove(&who.incarnation);
        }
        self.0.store.retired(on, who);
        self.0.store.spawn(Box::pin(Shared::retire(Arc::clone(&self.0), on.clone(), key, who.clone())));
    }

    fn signals(&self) -> Notices {
        let (notices, alive) = (Arc::clone(&self.0.notices), self.0.alive.subscribe());
        Box::pin(stream::unfold((notices, alive), |(notices, mut alive)| async move {
            let notice = tokio::select! {
                biased;
                notice = notices.next() => notice,
                _ = alive.changed() => return None,
            };
            Some((notice, (notices, alive)))
        }))
    }

    fn remember<'a>(&'a self, on: &'a ElectionName, past: &'a Past) -> Fut<'a, Result<(), StoreError>> {
        if !self.capabilities().history {
            return Box::pin(async { Ok(()) });
        }
        let (shared, on, past) = (Arc::clone(&self.0), on.clone(), past.clone());
        let call = async move {
            let pair = shared.pair().await?;
            shared.store.remember(&pair.sessions(), &on, &past).await
        };
        Box::pin(async { self.0.store.finish(call).await? })
    }

    fn history<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Vec<Past>, StoreError>> {
        Box::pin(async move {
            if !self.capabilities().history {
                return Ok(Vec::new());
            }
            let pair = self.0.pair().await?;
            self.0.store.history(&pair.sessions(), on).await
        })
    }

    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, StoreError>> {
        Box::pin(async move {
            if !self.capabilities().lists {
                return Ok(Vec::new());
            }
            let pair = self.0.pair().await?;
            self.0.store.elections(&pair.sessions()).await
        })
    }

    fn create_once<'a>(&'a self, name: &'a ElectionName, bytes: &'a [u8]) -> Fut<'a, Creation> {
        let unfit = match self.capabilities().create_once {
            true => once::check(self.name(), bytes).err(),
            false => Some(once::unsupported(self.name())),
        };
        if let Some(error) = unfit {
            return Box::pin(async { Creation::Refused(error) });
        }
        let (shared, name, bytes) = (Arc::clone(&self.0), name.clone(), bytes.to_vec());
        let call = async move {
            match shared.pair().await {
                Ok(pair) => shared.store.create_once(&pair.sessions(), &name, &bytes).await,
                Err(error) => Creation::failed(error),
            }
        };
        Box::pin(async { self.0.store.finish(call).await.unwrap_or_else(Creation::Unknown) })
    }

    fn read_once<'a>(&'a self, name: &'a ElectionName) -> Fut<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move {
            if !self.capabilities().create_once {
                return Err(once::unsupported(self.name()));
            }
            let pair = self.0.pair().await?;
            self.0.store.read_once(&pair.sessions(), name).await
        })
    }

    fn checkup<'a>(&'a self, probing: Probing<'a>) -> Fut<'a, Vec<Finding>> {
        Box::pin(async move {
            let examined = async {
                let pair = self.0.pair().await?;
                self.0.store.checkup(&pair.sessions(), probing).await
            };
            let failed = |error: StoreError| vec![Finding::failed("server", &error)];
            examined.await.unwrap_or_else(failed)
        })
    }

    fn danger_discard<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Discarded, StoreError>> {
        Box::pin(async move { Ok(self.0.store.danger_discard(on)) })
    }

    #[cfg(unix)]
    fn crash_proof(&self, on: &ElectionName, who: &Candidate) -> Vec<std::os::fd::OwnedFd> {
        let _ = (on, who);
        self.0.current().map(|pair| self.0.store.crash_proof(&pair.presence())).unwrap_or_default()
    }
}
