//! Callbacks: registered one by one, called in order, in a task of their own.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bellwether_backend::lock;
use bellwether_core::{ErrorKind, StoreError};
use futures_util::FutureExt;

use crate::event::{Event, What};
use crate::subscription::{EventQueue, Events};

/// What a callback is called for.
///
/// ```
/// use bellwether_election::{Election, On};
///
/// let builder = Election::builder("reports").on(On::Lost, |event| eprintln!("lost: {:?}", event.what));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum On {
    /// Every event.
    Any,
    /// A leadership began; after a suspension, that is [`Resumed`](On::Resumed).
    Acquired,
    /// The leader gave its leadership up.
    Released,
    /// The leadership was lost.
    Lost,
    /// Leadership is uncertain and has ended; it may resume under a new epoch.
    Suspended,
    /// A new leadership began after a suspension.
    Resumed,
    /// The store denied a claim.
    AcquireFailed,
    /// From one state to another.
    StateChange,
    /// Another leader, or none.
    LeaderChange,
    /// A renewal is overdue.
    Danger,
    /// Something went wrong, in the store or in a callback.
    Error,
    /// The candidate has stopped.
    Stopped,
}

impl On {
    fn matches(self, what: &What) -> bool {
        match self {
            On::Any => true,
            On::Acquired => matches!(what, What::Acquired { .. }),
            On::Released => matches!(what, What::Released { .. }),
            On::Lost => matches!(what, What::Lost { .. }),
            On::Suspended => matches!(what, What::Suspended { .. }),
            On::Resumed => matches!(what, What::Resumed { .. }),
            On::AcquireFailed => matches!(what, What::AcquireFailed { .. }),
            On::StateChange => matches!(what, What::StateChanged { .. }),
            On::LeaderChange => matches!(what, What::LeaderChanged { .. }),
            On::Danger => matches!(what, What::Danger { .. }),
            On::Error => matches!(what, What::Error(_)),
            On::Stopped => matches!(what, What::Stopped),
        }
    }
}

/// What a callback may return: nothing, or a result whose error goes to the `Error` callbacks.
///
/// ```
/// use bellwether_election::Election;
///
/// let builder = Election::builder("reports").on_acquired(|event| std::fs::write("/run/leader", event.to_json_line()));
/// ```
pub trait Answer {
    /// The error, in words.
    fn into_failure(self) -> Option<String>;
}

impl Answer for () {
    fn into_failure(self) -> Option<String> {
        None
    }
}

impl<E: std::fmt::Display> Answer for Result<(), E> {
    fn into_failure(self) -> Option<String> {
        self.err().map(|error| error.to_string())
    }
}

type Called = Pin<Box<dyn Future<Output = Option<String>> + Send>>;
type Callback = Arc<dyn Fn(Event) -> Called + Send + Sync>;

/// The callbacks of one election, in the order of their registration.
#[derive(Default)]
pub(crate) struct Callbacks {
    registered: Mutex<Vec<(On, Callback)>>,
    /// Where the task that calls them gets its events. It is closed when that task has ended with its runtime, or the driver with its own.
    feed: Mutex<Option<Arc<EventQueue>>>,
    /// Held by that task. One that follows it begins when it has ended: callbacks are called one after the other.
    turn: tokio::sync::Mutex<()>,
}

impl Callbacks {
    pub(crate) fn add<A: Answer>(&self, on: On, callback: impl Fn(Event) -> A + Send + Sync + 'static) {
        self.push(on, move |event| std::future::ready(callback(event).into_failure()));
    }

    pub(crate) fn add_async<A, F>(&self, on: On, callback: impl Fn(Event) -> F + Send + Sync + 'static)
    where
        A: Answer,
        F: Future<Output = A> + Send + 'static,
    {
        self.push(on, move |event| {
            let called = callback(event);
            async move { called.await.into_failure() }
        });
    }

    /// The events for [`run`], and where to put them, if there is anything to call and no task yet that gets events.
    pub(crate) fn new_feed(&self) -> Option<(Events, Arc<EventQueue>)> {
        if lock(&self.registered).is_empty() {
            return None;
        }
        let mut feed = lock(&self.feed);
        if feed.as_ref().is_some_and(|queue| !queue.is_closed()) {
            return None;
        }
        let (events, queue) = Events::new();
        *feed = Some(Arc::clone(&queue));
        Some((events, queue))
    }

    fn push<F>(&self, on: On, callback: impl Fn(Event) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Option<String>> + Send + 'static,
    {
        lock(&self.registered).push((on, Arc::new(move |event| Box::pin(callback(event)))));
    }

    fn matching(&self, what: &What) -> Vec<(On, Callback)> {
        lock(&self.registered).iter().filter(|(on, _)| on.matches(what)).cloned().collect()
    }

    async fn call(&self, event: &Event) {
        for (on, callback) in self.matching(&event.what) {
            let event_for_callback = event.clone();
            let call = AssertUnwindSafe(async move { callback(event_for_callback).await }).catch_unwind();
            let failure = call.await.unwrap_or_else(|_| Some("panicked".to_owned()));
            if let Some(said) = failure {
                let sentence = format!("callback for {} failed: {said}", event.what.as_str());
                tracing::warn!(election = %event.election, incarnation = %event.candidate.incarnation, "{sentence}");
                if on != On::Error && on != On::Any {
                    let error = StoreError::new(ErrorKind::Bug, "callback", sentence);
                    let report = Event { what: What::Error(error), ..event.clone() };
                    Box::pin(self.call(&report)).await;
                }
            }
        }
    }
}

/// Calls the callbacks of one election until there are no more events.
pub(crate) async fn run(callbacks: Arc<Callbacks>, mut events: Events) {
    let _turn = callbacks.turn.lock().await;
    while let Some(event) = events.next().await {
        callbacks.call(&event).await;
    }
}
