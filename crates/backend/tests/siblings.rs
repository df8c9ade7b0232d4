//! Two candidates of one election in one process, on a store that announces nothing.

mod bidding;

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{
    Backend, Capabilities, Changes, Found, FoundNote, Lease, Memory, MemoryStore, Note, Notices, Record,
    Register, Write,
};
use bellwether_core::{ElectionName, Epoch, Outcome, Proof, ReleaseOptions, Seen, Signal, StoreError};
use bellwether_deadman::SystemClock;
use bidding::{bid, on};
use futures_util::StreamExt;

const TTL: Duration = Duration::from_secs(10);

/// The store in memory, without its announcements.
struct Unannounced(Memory);

impl Register for Unannounced {
    type Version = u64;

    fn name(&self) -> &'static str {
        "unannounced"
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn load(&self, on: &ElectionName) -> Result<Found<u64>, StoreError> {
        self.0.load(on).await
    }

    async fn write(&self, on: &ElectionName, at: Option<&u64>, new: &Record) -> Write<u64> {
        self.0.write(on, at, new).await
    }

    fn follow(&self, _: &ElectionName) {}

    fn unfollow(&self, _: &ElectionName) {}

    fn changes(&self) -> Changes<u64> {
        Box::pin(futures_util::stream::pending())
    }

    async fn epoch(
        &self,
        on: &ElectionName,
        replaced: Option<(&Record, &u64)>,
        least: Epoch,
    ) -> Result<Epoch, StoreError> {
        self.0.epoch(on, replaced, least).await
    }

    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        self.0.elections().await
    }

    async fn read_note(&self, on: &ElectionName, note: &Note) -> Result<FoundNote, StoreError> {
        self.0.read_note(on, note).await
    }

    async fn write_note(&self, on: &ElectionName, note: &Note, at: Option<u64>, bytes: &[u8]) -> Write<u64> {
        self.0.write_note(on, note, at, bytes).await
    }
}

async fn told(notices: &mut Notices) -> Seen {
    let notice = tokio::time::timeout(TTL, notices.next()).await;
    match notice.expect("the others of the process are told").map(|notice| notice.signal) {
        Some(Signal::Changed(seen)) => seen,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_one_writes_is_told_to_the_other() {
    let lease = Lease::new(Unannounced(MemoryStore::default().register()), Arc::new(SystemClock));
    let mut notices = lease.signals();
    // Each candidate follows.
    lease.follow(&on());
    lease.follow(&on());
    let Outcome::Done(grant) = lease.claim(&on(), &bid("a", 1, TTL)).await else { panic!("it is free") };
    assert_eq!(told(&mut notices).await.epoch, Some(grant.epoch), "who leads");
    let released = lease.release(&on(), &grant, &ReleaseOptions::default()).await;
    assert!(matches!(released, Outcome::Done(())), "{released:?}");
    assert_eq!(told(&mut notices).await.proof, Proof::Released, "the other may claim at once");
}
