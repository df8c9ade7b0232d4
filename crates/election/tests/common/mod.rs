//! What the stories share: candidates on a store in memory, a log that can be waited for, a store on strings.

#![allow(dead_code, unused_imports, unreachable_pub)]

pub mod puppet;

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{Backend, MemoryStore};
use bellwether_deadman::SystemClock;
use bellwether_election::{Election, ElectionBuilder, ElectionName, Event, Events, Store};
use tokio::sync::watch;

pub use puppet::{Op, Puppet, Rule};

/// Longer than anything takes on the slowest machine; a story that waits so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The election that the stories are about.
pub const NAME: &str = "reports";

pub fn name() -> ElectionName {
    ElectionName::new(NAME).unwrap()
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Waits, but not for ever.
pub async fn soon<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(PATIENCE, what).await.expect("this should have happened long ago")
}

/// One more connection to the store.
pub fn connect(store: &MemoryStore) -> Arc<dyn Backend> {
    hush_planned_panics();
    Arc::new(store.connect(Arc::new(SystemClock)))
}

/// A planned panic prints nothing. To print a backtrace takes seconds on a slow machine, and meanwhile the runtime of the test, which has
/// one thread, renews nothing.
fn hush_planned_panics() {
    static HUSHED: std::sync::Once = std::sync::Once::new();
    HUSHED.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let is_planned =
                panic.payload().downcast_ref::<&str>().is_some_and(|said| said.contains("planned"));
            if !is_planned {
                usual(panic);
            }
        }));
    });
}

/// A candidate with a connection of its own, and a ttl that a slow machine keeps up with.
pub fn candidate(store: &MemoryStore, id: &str) -> ElectionBuilder {
    on(Store::new(connect(store)), id)
}

pub fn on(store: Store, id: &str) -> ElectionBuilder {
    Election::builder(NAME).backend(store).id(id).ttl(ms(3_000))
}

/// A store whose calls can be made to hang, fail, answer late or be refused, and a candidate on it.
pub fn puppet(store: &MemoryStore, id: &str) -> (Puppet, ElectionBuilder) {
    let puppet = Puppet::new(connect(store));
    let builder = on(Store::from(puppet.clone()), id);
    (puppet, builder)
}

/// Lines in order, which can be waited for.
#[derive(Clone)]
pub struct Log(Arc<watch::Sender<Vec<String>>>);

impl Default for Log {
    fn default() -> Log {
        Log(Arc::new(watch::Sender::new(Vec::new())))
    }
}

impl Log {
    pub fn put(&self, line: impl Into<String>) {
        let line = line.into();
        self.0.send_modify(|lines| lines.push(line));
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    pub fn count(&self, start: &str) -> usize {
        self.0.borrow().iter().filter(|line| line.starts_with(start)).count()
    }

    /// Waits until so many lines begin like this.
    pub async fn until(&self, start: &str, count: usize) {
        let mut lines = self.0.subscribe();
        let enough =
            lines.wait_for(|lines| lines.iter().filter(|line| line.starts_with(start)).count() >= count);
        let found = tokio::time::timeout(PATIENCE, enough).await.map(|found| found.is_ok());
        assert!(found.is_ok(), "waited for {count} × {start:?}: {:?}", self.lines());
    }

    /// Where the first line that begins like this stands.
    pub fn place(&self, start: &str) -> usize {
        let lines = self.lines();
        lines.iter().position(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {lines:?}"))
    }

    /// A value that writes a line when it is dropped.
    pub fn on_drop(&self, line: &str) -> OnDrop {
        OnDrop(self.clone(), line.to_owned())
    }
}

/// Writes a line when it is dropped.
pub struct OnDrop(Log, String);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.put(self.1.clone());
    }
}

/// The next event of this kind; others before it are passed over.
pub async fn next(events: &mut Events, word: &str) -> Event {
    let wanted = async {
        loop {
            let event = events.next().await.unwrap_or_else(|| panic!("no more events, and no {word}"));
            if event.what.as_str() == word {
                return event;
            }
        }
    };
    tokio::time::timeout(PATIENCE, wanted).await.unwrap_or_else(|_| panic!("no event {word}"))
}

/// Every event until this kind, as words.
pub async fn words_until(events: &mut Events, word: &str) -> Vec<&'static str> {
    let mut words = Vec::new();
    loop {
        let event = soon(events.next()).await.unwrap_or_else(|| panic!("no {word} after {words:?}"));
        words.push(event.what.as_str());
        if event.what.as_str() == word {
            return words;
        }
    }
}

/// Waits until a condition that no event announces holds.
pub async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(ms(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}
