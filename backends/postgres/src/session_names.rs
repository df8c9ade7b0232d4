//! What the sessions of a process are called, by the candidates that use them.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use bellwether_core::CandidateId;

use crate::names::{self, SessionTtl};
use crate::store::lock;

/// The candidates that have used the sessions of a process, and their ttls.
#[derive(Default)]
pub(crate) struct SessionNames {
    /// Two are as untold as many, so no more are kept.
    ids: Mutex<BTreeSet<CandidateId>>,
    lease: Mutex<Option<SessionTtl>>,
    /// What the lock session was called last.
    last: Mutex<String>,
}

impl SessionNames {
    /// Remembers that this id and ttl use the sessions, and says which do: the id where there is only one, and the longest ttl.
    pub(crate) fn used_by(
        &self,
        id: &CandidateId,
        ttl: Duration,
    ) -> (Option<CandidateId>, Option<SessionTtl>) {
        let mut ids = lock(&self.ids);
        if ids.len() < 2 {
            ids.insert(id.clone());
        }
        let mut lease = lock(&self.lease);
        let known = lease.unwrap_or(SessionTtl { ttl, is_only: true });
        *lease = Some(SessionTtl { ttl: known.ttl.max(ttl), is_only: known.is_only && known.ttl == ttl });
        ((ids.len() == 1).then(|| id.clone()), *lease)
    }

    /// What the lock session is to be called from now on, if that is something else.
    pub(crate) fn changed_by(&self, id: &CandidateId, ttl: Duration) -> Option<String> {
        let (id, lease) = self.used_by(id, ttl);
        let name = names::write(id.as_ref(), lease);
        let mut last = lock(&self.last);
        if *last == name {
            return None;
        }
        last.clone_from(&name);
        Some(name)
    }

    /// What a session of this role is called.
    pub(crate) fn of(&self, role: &str) -> String {
        let ids = lock(&self.ids);
        if ids.is_empty() {
            return names::of_nobody(role);
        }
        names::of(ids.first().filter(|_| ids.len() == 1), role)
    }
}
