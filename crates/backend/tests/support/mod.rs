//! The harness for the store in memory.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::conformance::Harness;
use bellwether_backend::faults::{Faults, FaultyBackend, FaultyRegister};
use bellwether_backend::{Backend, Fut, Lease, MemoryStore, Register};
use bellwether_core::{Clock, ElectionName, StoreError};
use bellwether_deadman::SystemClock;

pub(crate) struct InMemory {
    pub(crate) store: MemoryStore,
    /// Faults happen below the lease rather than above the backend.
    pub(crate) faults_below: bool,
}

impl InMemory {
    pub(crate) fn new() -> InMemory {
        InMemory { store: MemoryStore::default(), faults_below: true }
    }
}

fn lease<R: Register>(register: R, clock: Arc<dyn Clock>) -> Arc<dyn Backend> {
    Arc::new(Lease::new(register, clock))
}

impl Harness for InMemory {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    fn connect(&self, clock: Arc<dyn Clock>) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        Box::pin(async move { Ok(lease(self.store.register(), clock)) })
    }

    fn connect_faulty(
        &self,
        clock: Arc<dyn Clock>,
        faults: Faults,
    ) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        Box::pin(async move {
            let register = self.store.register();
            if self.faults_below {
                return Ok(lease(FaultyRegister::new(register, faults), clock));
            }
            let backend = FaultyBackend::new(lease(register, clock), faults);
            Ok(Arc::new(backend) as Arc<dyn Backend>)
        })
    }

    fn slack(&self) -> Duration {
        // Memory answers at once; this is for a machine that does other things as well.
        Duration::from_secs(2)
    }

    fn delete<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<bool, StoreError>> {
        self.store.delete(on);
        Box::pin(async { Ok(true) })
    }

    fn fingerprint(&self) -> Fut<'_, Result<Option<String>, StoreError>> {
        Box::pin(async { Ok(Some(format!("{} writes", self.store.writes()))) })
    }
}
