//! The story of a leader whose process is cloned, on any register.

use bellwether_backend::{Backend, Lease, Register};
use bellwether_core::Outcome;

use crate::{Actor, clock};

/// How often each of the two renews.
const ROUNDS: usize = 50;

/// A leading process is cloned, as a virtual machine is that is restored from a snapshot twice, and both renew in turn. The one that
/// renews first goes on. The other has lost, takes nothing back, and waits like anybody else.
///
/// # Panics
/// When both go on, or neither.
pub async fn one_clone_goes_on<R: Register>(original: &Actor<Lease<R>>, register: R) {
    let grant = original.lead().await;
    let backend = original.backend.cloned(register, clock());
    let clone = Actor { backend, on: original.on.clone(), bid: original.bid.clone() };
    let mut heard = clone.news();
    original.keep(&grant).await;
    // Told by the store, and not only when it renews.
    heard.until_seen(|seen| seen.holder.is_some() && !seen.is_held_by(&clone.bid.who)).await;
    for round in 0..ROUNDS {
        original.keep(&grant).await;
        let Outcome::Denied(seen) = clone.renew(&grant).await else {
            panic!("both renewed in round {round}")
        };
        assert!(!seen.is_held_by(&clone.bid.who), "the clone takes the other's record for its own");
    }
    let released = clone.backend.release(&clone.on, &grant, &Default::default()).await;
    assert!(matches!(released, Outcome::Denied(_)), "the clone released the other's record: {released:?}");
    clone.denied().await;
    original.keep(&grant).await;
    original.let_go(&grant).await;
    let later = clone.lead().await;
    assert!(later.epoch > grant.epoch);
    original.denied().await;
}
