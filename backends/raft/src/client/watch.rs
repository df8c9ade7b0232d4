//! News from the cluster: one stream for everything that is followed, on the connection that calls use.
//!
//! A node tells what there is now, and not every change that led to it. So a stream can end at any moment: the next one begins with
//! whatever has changed since the last news that arrived, on any node.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bellwether_backend::lock;
use bellwether_cluster::transport::{Connection, PartStream};
use bellwether_core::{ElectionName, Signal, StoreError};
use tokio::runtime::Handle;
use tokio::sync::watch as channel;

use super::{Interest, Shared};
use crate::errors::unavailable;
use crate::protocol::{Followed, News, Subscription, decode, encode};

/// Elections that are followed one after the other within this time share a stream from the start.
const GATHER: Duration = Duration::from_millis(2);
/// Before another node is asked for news.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// What the watch knows.
#[derive(Default)]
pub(super) struct State {
    is_running: bool,
    /// What was told last of each election.
    told: HashMap<ElectionName, Told>,
    /// Why there is no news at the moment.
    silent: Option<StoreError>,
}

#[derive(Clone, Copy, Default)]
struct Told {
    revision: u64,
    /// Of the last request.
    request: u64,
}

impl State {
    pub(super) fn forget(&mut self, on: &ElectionName) {
        self.told.remove(on);
    }

    pub(super) fn why_silent(&self) -> Option<StoreError> {
        self.silent.clone()
    }
}

/// Watches from now on, if nobody does yet.
pub(super) fn begin(shared: &Arc<Shared>) {
    let Ok(runtime) = Handle::try_current() else { return };
    if std::mem::replace(&mut lock(&shared.watching).is_running, true) {
        return;
    }
    let (weak, mut alive) = (Arc::downgrade(shared), shared.alive.subscribe());
    let interest = shared.followed.subscribe();
    runtime.spawn(async move {
        tokio::select! {
            () = watch(&weak, interest) => {}
            _ = alive.changed() => {}
        }
    });
}

async fn watch(shared: &Weak<Shared>, mut interest: channel::Receiver<Interest>) {
    loop {
        let wanted = interest.borrow_and_update().clone();
        if wanted.elections.is_empty() {
            if interest.changed().await.is_err() {
                return;
            }
            tokio::time::sleep(GATHER).await;
            continue;
        }
        let opened = {
            let Some(shared) = shared.upgrade() else { return };
            shared.open_stream(&wanted).await
        };
        match opened {
            Ok((connection, stream)) => {
                let Some(current) = shared.upgrade().map(|shared| shared.link.current()) else { return };
                let mut has_heard = false;
                let heard = (&mut interest, &mut has_heard);
                if let Err(error) = listen(shared, heard, (connection, current), stream).await {
                    let Some(shared) = shared.upgrade() else { return };
                    shared.fell_silent(error);
                    // A node that lets everybody in and tells nobody anything is not asked again and again.
                    if !has_heard {
                        drop(shared);
                        tokio::time::sleep(RETRY_PAUSE).await;
                    }
                }
            }
            Err(error) => {
                if let Some(shared) = shared.upgrade() {
                    shared.fell_silent(error);
                }
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

/// Tells news until something else is wanted, or the connection is another one. Notes whether it has told any.
async fn listen(
    shared: &Weak<Shared>,
    (interest, has_heard): (&mut channel::Receiver<Interest>, &mut bool),
    (connection, mut current): (Connection, channel::Receiver<Option<Connection>>),
    mut stream: PartStream,
) -> Result<(), StoreError> {
    let is_another = |now: &Option<Connection>| !now.as_ref().is_some_and(|now| now.is_same(&connection));
    let moved = async { drop(current.wait_for(is_another).await) };
    tokio::pin!(moved);
    loop {
        tokio::select! {
            part = stream.next() => match part {
                Some(Ok(part)) => {
                    let Some(shared) = shared.upgrade() else { return Ok(()) };
                    shared.heard(&part)?;
                    *has_heard = true;
                }
                Some(Err(error)) => {
                    if let Some(shared) = shared.upgrade() {
                        shared.link.leave(&connection, None);
                    }
                    return Err(unavailable(error.to_string()));
                }
                None => return Ok(()),
            },
            () = &mut moved => {
                return Err(unavailable("the node did not answer"));
            }
            changed = interest.changed() => {
                if changed.is_ok() {
                    tokio::time::sleep(GATHER).await;
                }
                return Ok(());
            }
        }
    }
}

impl Shared {
    async fn open_stream(&self, wanted: &Interest) -> Result<(Connection, PartStream), StoreError> {
        let connection = self.link.connection().await?;
        let elections = {
            let watching = lock(&self.watching);
            let followed = |on: &ElectionName| {
                let told = watching.told.get(on).copied().unwrap_or_default();
                Followed { on: on.clone(), known: told.revision, known_request: told.request }
            };
            wanted.elections.keys().map(followed).collect()
        };
        let subscription = Subscription { sessions: wanted.sessions.clone(), elections };
        let stream = connection.open_stream(encode(&subscription));
        let stream = stream.map_err(|error| unavailable(error.to_string()))?;
        Ok((connection, stream))
    }

    fn heard(&self, part: &[u8]) -> Result<(), StoreError> {
        // The first part of a stream tells nothing but that it is open.
        if lock(&self.watching).silent.take().is_some() {
            self.notices.all(Signal::Restored);
        }
        let news: Vec<News> = decode(part).map_err(unavailable)?;
        for News { on, view, request } in news {
            if !self.followed.borrow().elections.contains_key(&on) {
                continue;
            }
            let (is_change, is_request) = {
                let mut watching = lock(&self.watching);
                let told = watching.told.entry(on.clone()).or_default();
                let made = request.as_ref().map_or(0, |(made, _)| *made);
                let news = (view.revision > told.revision, made > told.request);
                *told = Told { revision: told.revision.max(view.revision), request: told.request.max(made) };
                news
            };
            if let (true, Some((_, ask))) = (is_request, &request) {
                self.notices.about(on.clone(), Signal::Requested(ask.request(view.epoch)));
            }
            if is_change {
                self.notices.about(on, Signal::Changed(view.seen()));
            }
        }
        Ok(())
    }

    /// Says so once: leaders lead on until their deadline, and followers notice changes late.
    fn fell_silent(&self, error: StoreError) {
        tracing::debug!(%error, "no news from the cluster");
        if lock(&self.watching).silent.replace(error).is_none() {
            self.notices.all(Signal::Doubt);
        }
    }
}

#[cfg(all(test, feature = "service"))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bellwether_backend::Backend;
    use bellwether_cluster::transport::{Hello, Host, Listener, PartSender, Refused, Security, Welcome};
    use bellwether_cluster::{NodeId, NodeName};
    use futures_util::future::BoxFuture;

    use super::*;
    use crate::stage::{client, election};

    /// A node that has more followers than it may have.
    #[derive(Default)]
    struct Full(AtomicUsize);

    impl Host for Full {
        fn greet(&self, _: &Hello) -> Result<Welcome, Refused> {
            let name = NodeName::new("full").expect("a name");
            Ok(Welcome { node: NodeId::from_random(1), name, cluster: None })
        }

        fn serve(&self, _: Arc<Hello>, _: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, String>> {
            Box::pin(async { Err("nothing is served here".to_owned()) })
        }

        fn stream(&self, _: Arc<Hello>, _: Vec<u8>, _: PartSender) -> BoxFuture<'static, Result<(), String>> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Err("this node has too many followers".to_owned()) })
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_node_that_tells_nothing_is_not_asked_in_a_busy_loop() {
        let full = Arc::new(Full::default());
        let listener =
            Listener::bind("127.0.0.1:0", Security::LoopbackOnly, Arc::clone(&full) as _).await.unwrap();
        let store = client(&format!("raft://{}", listener.local_address()));
        store.follow(&election("e"));
        tokio::time::sleep(10 * RETRY_PAUSE).await;
        let asked = full.0.load(Ordering::SeqCst);
        assert!((1..=12).contains(&asked), "asked {asked} times in {:?}", 10 * RETRY_PAUSE);
    }
}
