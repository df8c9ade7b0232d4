//! What the suite needs of a backend's author.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{Candidate, Clock, ElectionName, StoreError};

use crate::faults::{Faults, FaultyBackend};
use crate::{Backend, Fut};

/// How the suite gets at a store. Only the first two are required; what the others leave out is skipped by name.
#[expect(unused_variables, reason = "the default of an optional method ignores what it is given")]
pub trait Harness: Send + Sync + 'static {
    /// The clock of this machine.
    fn clock(&self) -> Arc<dyn Clock>;

    /// A fresh connection, as another process would have, living by this clock. The suite hands in clocks that are
    /// set differently, as those of other machines are.
    fn connect(&self, clock: Arc<dyn Clock>) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>>;

    /// A fresh connection that misbehaves as these faults say. Override it where there is a register to wrap
    /// ([`FaultyRegister`](crate::faults::FaultyRegister)): only then does the lease itself meet the faults.
    fn connect_faulty(
        &self,
        clock: Arc<dyn Clock>,
        faults: Faults,
    ) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        Box::pin(async move {
            let inner = self.connect(clock).await?;
            Ok(Arc::new(FaultyBackend::new(inner, faults)) as Arc<dyn Backend>)
        })
    }

    /// The shortest ttl that is sensible for the store: many calls must fit in it.
    fn ttl(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// How late news, answers and the store's own expiry may be before the suite calls it a failure.
    fn slack(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// How many cases may run at a time; each opens up to four connections.
    fn cases_at_once(&self) -> usize {
        24
    }

    /// Removes the record of an election behind everybody's back. False: there is nothing that could be removed.
    fn delete<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<bool, StoreError>> {
        Box::pin(async { Ok(false) })
    }

    /// The content of the whole store, or a number that every write changes. `None`: it cannot be told.
    fn fingerprint(&self) -> Fut<'_, Result<Option<String>, StoreError>> {
        Box::pin(async { Ok(None) })
    }

    /// Leads in another process as this candidate, and kills that process once it leads. The answer comes when it is
    /// killed. False: there is no such process.
    fn crash<'a>(
        &'a self,
        on: &'a ElectionName,
        who: &'a Candidate,
        ttl: Duration,
    ) -> Fut<'a, Result<bool, StoreError>> {
        Box::pin(async { Ok(false) })
    }
}
