//! The suite can fail: a register that breaks its contract is reported, by more than one case, so that no single story is all that
//! stands between such a store and its users.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::conformance::{self, Harness};
use bellwether_backend::faults::{Faults, FaultyRegister};
use bellwether_backend::{
    Backend, Capabilities, Changes, Found, FoundNote, Fut, Lease, Memory, MemoryStore, Note, Record,
    Register, Write,
};
use bellwether_core::{Clock, ElectionName, Epoch, StoreError};
use bellwether_deadman::SystemClock;
use futures_util::StreamExt;

/// What an author gets wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// Whatever is gone is said to have run out.
    TakesAwayLies,
    /// Reads the version, and puts if it is the one; others may write in between.
    CheckThenPut,
    /// Where nothing is expected, whatever is there is overwritten.
    CreateOverwrites,
    /// A note that is to be created replaces what is there.
    NotesOverwrite,
    /// Versions tell records apart, and not which came first.
    VersionsUnordered,
}

struct Bad {
    store: MemoryStore,
    inner: Memory,
    mistake: Mistake,
}

impl Bad {
    /// One to one, and in no order.
    fn shown(&self, version: u64) -> u64 {
        if self.mistake == Mistake::VersionsUnordered { version.reverse_bits() } else { version }
    }

    async fn put(&self, on: &ElectionName, new: &Record) -> Write<u64> {
        self.store.put(on, new.clone());
        match self.inner.load(on).await {
            Ok(Some((_, version))) => Write::Done(version),
            other => panic!("just put: {other:?}"),
        }
    }
}

impl Register for Bad {
    type Version = u64;

    fn name(&self) -> &'static str {
        "bad"
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn load(&self, on: &ElectionName) -> Result<Found<u64>, StoreError> {
        let found = self.inner.load(on).await?;
        Ok(found.map(|(record, version)| (record, self.shown(version))))
    }

    async fn write(&self, on: &ElectionName, at: Option<&u64>, new: &Record) -> Write<u64> {
        // Its own inverse.
        let at = at.map(|version| self.shown(*version));
        let written = match (self.mistake, at) {
            (Mistake::CreateOverwrites, None) => self.put(on, new).await,
            (Mistake::CheckThenPut, at) => {
                let found = self.inner.load(on).await.expect("memory can be read");
                if found.map(|(_, version)| version) != at {
                    return Write::Conflict;
                }
                tokio::task::yield_now().await;
                self.put(on, new).await
            }
            (_, at) => self.inner.write(on, at.as_ref(), new).await,
        };
        written.map(|version| self.shown(version))
    }

    fn follow(&self, on: &ElectionName) {
        self.inner.follow(on);
    }

    fn unfollow(&self, on: &ElectionName) {
        self.inner.unfollow(on);
    }

    fn changes(&self) -> Changes<u64> {
        let unordered = self.mistake == Mistake::VersionsUnordered;
        Box::pin(self.inner.changes().inspect(move |change| {
            let look = matches!(change, bellwether_backend::Change::Look(_));
            assert!(look || !unordered, "memory tells no versions");
        }))
    }

    async fn epoch(
        &self,
        on: &ElectionName,
        _: Option<(&Record, &u64)>,
        least: Epoch,
    ) -> Result<Epoch, StoreError> {
        self.inner.epoch(on, None, least).await
    }

    fn takes_away(&self, _: &ElectionName) -> bool {
        self.mistake == Mistake::TakesAwayLies
    }

    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        self.inner.elections().await
    }

    async fn read_note(&self, on: &ElectionName, note: &Note) -> Result<FoundNote, StoreError> {
        self.inner.read_note(on, note).await
    }

    async fn write_note(&self, on: &ElectionName, note: &Note, at: Option<u64>, bytes: &[u8]) -> Write<u64> {
        let at = match (self.mistake, at) {
            (Mistake::NotesOverwrite, None) => {
                let found = self.inner.read_note(on, note).await.expect("memory can be read");
                found.map(|(_, version)| version)
            }
            (_, at) => at,
        };
        self.inner.write_note(on, note, at, bytes).await
    }
}

struct Badly {
    store: MemoryStore,
    mistake: Mistake,
}

impl Badly {
    fn register(&self) -> Bad {
        Bad { store: self.store.clone(), inner: self.store.register(), mistake: self.mistake }
    }
}

impl Harness for Badly {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    fn connect(&self, clock: Arc<dyn Clock>) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        Box::pin(async move { Ok(Arc::new(Lease::new(self.register(), clock)) as Arc<dyn Backend>) })
    }

    fn connect_faulty(
        &self,
        clock: Arc<dyn Clock>,
        faults: Faults,
    ) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        let register = FaultyRegister::new(self.register(), faults);
        Box::pin(async move { Ok(Arc::new(Lease::new(register, clock)) as Arc<dyn Backend>) })
    }

    fn slack(&self) -> Duration {
        Duration::from_secs(2)
    }

    fn delete<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<bool, StoreError>> {
        self.store.delete(on);
        Box::pin(async { Ok(true) })
    }
}

/// The cases that report it.
async fn reported_by(mistake: Mistake) -> Vec<&'static str> {
    let harness = Badly { store: MemoryStore::default(), mistake };
    let report = conformance::run(Arc::new(harness)).await;
    println!("{mistake:?}\n{report}");
    report.failed().map(|(case, _)| case).collect()
}

#[tokio::test]
async fn every_mistake_is_reported_by_at_least_two_cases() {
    let mistakes = [
        Mistake::TakesAwayLies,
        Mistake::CheckThenPut,
        Mistake::CreateOverwrites,
        Mistake::NotesOverwrite,
        Mistake::VersionsUnordered,
    ];
    for mistake in mistakes {
        let cases = reported_by(mistake).await;
        assert!(cases.len() >= 2, "{mistake:?} is reported by {cases:?} only");
    }
}
