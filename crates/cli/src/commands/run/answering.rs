//! With the NATS profile `cluster`: answers questions about this node's health, as nodes of go-cluster do, for as long as it takes
//! part. No leadership depends on it.

use std::sync::Arc;
use std::time::Duration;

use bellwether::nats::{HealthChecker, Nats, NatsRegister, Profile};
use bellwether::{CandidateId, Election, ElectionName, Store, SystemClock};
use tokio::task::JoinHandle;

use crate::args::Global;
use crate::backend;
use crate::exit::Failure;
use crate::id::id;

/// After a try to subscribe that failed.
const RETRY: Duration = Duration::from_secs(1);

/// The store, and who answers on its connection where the profile has that.
pub(super) fn connect(global: &Global, on: &ElectionName) -> Result<(Store, Option<HealthChecker>), Failure> {
    let store = backend::connect(global)?;
    let config = backend::nats_config(global)?;
    let Some(config) = config.filter(|config| config.profile() == Profile::Cluster) else {
        return Ok((store, None));
    };
    let clock = Arc::new(SystemClock);
    let elections = Nats::new(NatsRegister::new(config), clock.clone());
    let id = CandidateId::new(id(global)).map_err(bellwether::Error::from)?;
    let health = elections.register().health_in(on, &id, clock)?;
    Ok((Store::from(elections), Some(health)))
}

/// Answers until it is ended.
pub(super) struct Answering(JoinHandle<()>);

impl Answering {
    /// From when there is a connection.
    pub(super) fn begin(election: &Election, health: HealthChecker) -> Answering {
        bellwether::answer_for(election, &health);
        Answering(tokio::spawn(answer(health)))
    }

    /// Nobody answers any more, and nobody here holds the election.
    pub(super) async fn end(self) {
        self.0.abort();
        let _ = self.0.await;
    }
}

async fn answer(health: HealthChecker) {
    while let Err(error) = health.start().await {
        if !error.is_retryable() {
            tracing::warn!(%error, "questions about this node's health are not answered");
            return;
        }
        tokio::time::sleep(RETRY).await;
    }
    // Dropped, it answers no more.
    std::future::pending::<()>().await;
}
