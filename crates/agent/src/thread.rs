//! The thread in which everything is served.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use bellwether_election::{Election, Events, Metrics, Store};
use futures_util::future::OptionFuture;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::accept::accept;
use crate::campaign::{Clients, Pace, Roster, take_turns};
use crate::endpoints::{self, Context};
use crate::feed::Feed;
use crate::limits::{LAST_ANSWERS, LAST_EVENTS, connections_max, streams_max};
use crate::listener::Listener;
use crate::node_endpoints::{self, NodeReport};
use crate::store_reads::StoreRead;

/// How far its priority is below that of the rest: it gets a tenth of the processor time that others want at the same moment, and all
/// that nobody else wants.
const NICE: i32 = 10;

/// What is served.
pub struct Served {
    /// The candidate.
    pub election: Election,
    /// Its events, from when the server is to know of them.
    pub events: Events,
    /// Where its election is held.
    pub store: Store,
    /// What it is measured by.
    pub metrics: Metrics,
    /// What clients may do with its leadership.
    pub clients: Clients,
}

/// A server that runs. It holds the election, and ends when it is stopped or dropped.
pub struct Agent {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Serves, in a thread of its own. Call it in the runtime that the election lives in.
    ///
    /// # Errors
    /// When the process may have no more threads or descriptors.
    pub fn serve(self, served: Served) -> io::Result<Agent> {
        let main = Handle::current();
        in_thread(|stop| serve(self, served, main, stop))
    }

    /// Serves `/livez`, `/readyz` and `/metrics` of a node, in a thread of its own. Call it in the runtime that the node lives in.
    ///
    /// # Errors
    /// When the process may have no more threads or descriptors.
    pub fn serve_node(self, node: Arc<dyn NodeReport>) -> io::Result<Agent> {
        let main = Handle::current();
        in_thread(|stop| serve_node(self, node, main, stop))
    }
}

/// Runs what `work` makes of the signal to stop, in a thread and a runtime of its own.
fn in_thread<F: Future<Output = ()>>(
    work: impl FnOnce(oneshot::Receiver<()>) -> F + Send + 'static,
) -> io::Result<Agent> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new().name("http".to_owned()).spawn(move || {
        step_back();
        runtime.block_on(work(stopped));
    })?;
    Ok(Agent { stop: Some(stop), thread: Some(thread) })
}

async fn serve_node(
    listener: Listener,
    node: Arc<dyn NodeReport>,
    main: Handle,
    stop: oneshot::Receiver<()>,
) {
    let router = node_endpoints::router(&main, node);
    let accepting = accept(listener.socket, listener.certificates, router, connections_max());
    tokio::select! {
        Err(error) = accepting => tracing::error!(%error, "--http serves nobody any more"),
        _ = stop => {}
    }
    tokio::time::sleep(LAST_ANSWERS).await;
}

async fn serve(listener: Listener, served: Served, main: Handle, stop: oneshot::Receiver<()>) {
    let Served { election, events, store, metrics, clients } = served;
    let connections_max = connections_max();
    let feed = Arc::new(Feed::new(election.clone(), streams_max(connections_max)));
    let on = election.name().clone();
    let roster = Arc::new(Roster::new(Pace::of(election.settings())));
    let keeper = match clients {
        Clients::Refused => None,
        Clients::Welcome(keeper) => Some((keeper, None)),
        Clients::Awaited(keeper, gate) => Some((keeper, Some(gate))),
    };
    let is_awaited = matches!(keeper, Some((_, Some(_))));
    let campaigns = keeper.is_some().then(|| Arc::clone(&roster));
    let turns = OptionFuture::from(keeper.map(|(keeper, gate)| {
        take_turns(Arc::clone(&roster), election.clone(), store.clone(), keeper, gate)
    }));
    let context = Context {
        campaigns,
        awaited: is_awaited.then(|| Arc::clone(&roster)),
        record: StoreRead::record(&main, store.clone(), on.clone()),
        history: StoreRead::history(&main, store.clone(), on),
        elections: StoreRead::elections(&main, store.clone()),
        feed: Arc::clone(&feed),
        token: listener.token,
        election,
        store,
        metrics,
        main,
    };
    let router = endpoints::router(context);
    let accepting = accept(listener.socket, listener.certificates, router, connections_max);
    tokio::select! {
        failed = accepting => {
            if let Err(error) = failed {
                tracing::error!(%error, "--http serves nobody any more");
            }
        }
        () = feed.run(events, stop) => {}
        Some(()) = turns => {}
    }
    roster.close();
    // Nobody is accepted any more, and the socket's file is gone.
    let _ = tokio::time::timeout(LAST_EVENTS, feed.ended()).await;
    tokio::time::sleep(LAST_ANSWERS).await;
}

impl Agent {
    /// Ends it, after a moment for the last answers. What clients do cannot hold it up for longer.
    pub async fn stop(mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

/// Lets every other thread go first. Linux has a priority for each thread; elsewhere this would be the whole process's.
fn step_back() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "the priority of --http could not be lowered");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = NICE;
}
