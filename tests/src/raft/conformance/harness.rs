//! How the suite gets at a cluster whose leader fails.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::conformance::Harness;
use bellwether_backend::{Backend, Fut};
use bellwether_core::{Clock, StoreError};
use bellwether_raft::from_url;
use bellwether_support::clock;

use super::met::Met;
use super::patient::Patient;
use super::{Cluster, Fault, SLACK, TTL};

/// More than there are cases: all of a batch meet the same fault.
const AT_ONCE: usize = 100;

/// Connections to a cluster whose leader fails when the first case asks for one.
pub(super) struct Failing {
    cluster: Arc<Mutex<Cluster>>,
    url: String,
    fault: Fault,
    /// Whether a connection is used before a case has it.
    is_timed: bool,
    met: Arc<Met>,
    /// Held while the leader fails: no case begins before that.
    connected: tokio::sync::Mutex<usize>,
}

impl Failing {
    pub(super) fn new(cluster: Arc<Mutex<Cluster>>, url: String, fault: Fault, is_timed: bool) -> Failing {
        Failing { cluster, url, fault, is_timed, met: Arc::default(), connected: Default::default() }
    }

    /// What the calls have met so far.
    pub(super) fn met(&self) -> &Met {
        &self.met
    }

    /// The suite's own connection comes first, and calls nothing. The next one is a case's.
    async fn fail_once(&self) {
        let mut connected = self.connected.lock().await;
        *connected += 1;
        if *connected == 2 {
            let (cluster, fault) = (Arc::clone(&self.cluster), self.fault);
            let failing = move || cluster.lock().expect("nobody else uses it").fail(fault);
            tokio::task::spawn_blocking(failing).await.expect("somebody leads, and can fail");
            self.met.fails();
        }
    }

    /// A connection whose calls are noted there.
    fn patient(&self, clock: Arc<dyn Clock>, met: Arc<Met>) -> Result<Patient, StoreError> {
        let store = Arc::new(from_url(&self.url, Arc::clone(&clock))?);
        Ok(Patient::new(store, clock, met))
    }
}

impl Harness for Failing {
    fn clock(&self) -> Arc<dyn Clock> {
        clock()
    }

    fn connect(&self, clock: Arc<dyn Clock>) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        Box::pin(async move {
            self.fail_once().await;
            let store = self.patient(clock, Arc::clone(&self.met))?;
            if self.is_timed {
                store.elections().await?;
            }
            Ok(Arc::new(store) as Arc<dyn Backend>)
        })
    }

    fn ttl(&self) -> Duration {
        TTL
    }

    fn slack(&self) -> Duration {
        SLACK
    }

    fn cases_at_once(&self) -> usize {
        AT_ONCE
    }

    /// What looking could leave behind. Sessions of earlier cases expire meanwhile, so they are left out.
    fn fingerprint(&self) -> Fut<'_, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            // The elections are those of all cases, none of which calls here.
            let store = self.patient(clock(), Arc::default())?;
            let mut all = Vec::new();
            for on in store.elections().await? {
                all.push((on.to_string(), store.history(&on).await?.len()));
            }
            Ok(Some(format!("{all:?}")))
        })
    }
}
