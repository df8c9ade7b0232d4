//! Where each name is: what the resolver said last, and what was heard since.
//!
//! A member's address in the log is where it was when it was added. Addresses change; names do not. So whoever dials a member asks here
//! first, and what is here is renewed for as long as somebody is not reached.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::join::ALIVE;
use super::shared::Shared;
use crate::names::NodeName;
use crate::peer::Peer;

/// How often names are resolved anew while everybody is reached: for members that will move.
const RELAXED: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct AddressBook(Mutex<BTreeMap<NodeName, String>>);

impl AddressBook {
    /// What the resolver says now. Names that it leaves out are kept: a resolver may know those alone that are up.
    pub(super) fn learn(&self, peers: &[Peer]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for peer in peers {
            known.insert(peer.id.clone(), peer.address.clone());
        }
    }

    /// Everybody's but this one's.
    pub(super) fn all_but(&self, name: &NodeName) -> Vec<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter(|(other, _)| *other != name).map(|(_, address)| address.clone()).collect()
    }

    pub(super) fn of(&self, name: &NodeName) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

/// Asks the resolver once. What it cannot say now, it may say later.
pub(super) async fn learn(shared: &Shared) {
    match shared.resolver.resolve().await {
        Ok(peers) => shared.book.learn(&peers),
        Err(error) => tracing::debug!(%error, "peers cannot be found"),
    }
}

/// Resolves names again and again: often while a member is not reached, and seldom otherwise.
pub(super) async fn keep_up_to_date(shared: Arc<Shared>) {
    let often = shared.config.bootstrap.join_retry.max(Duration::from_millis(100));
    let mut waited = Duration::ZERO;
    loop {
        tokio::time::sleep(often).await;
        waited += often;
        if waited >= RELAXED || is_somebody_missing(&shared) {
            waited = Duration::ZERO;
            learn(&shared).await;
        }
    }
}

/// The leader misses a member that does not answer; a follower misses the leader.
fn is_somebody_missing(shared: &Shared) -> bool {
    let Some(engine) = shared.engine() else { return true };
    let (status, own) = (engine.status().borrow().clone(), shared.known().node);
    let is_alive = |node| shared.heard.ago(node).is_some_and(|ago| ago < ALIVE);
    let others =
        status.configuration.members.iter().map(|(member, _)| member.node).filter(|node| *node != own);
    status.leader.is_none() || (status.is_leader && !others.clone().all(is_alive))
}
