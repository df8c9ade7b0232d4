//! Leader election: one process does the work, the others stand by, and never two.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), bellwether::Error> {
//! use bellwether::Election;
//!
//! let backend = bellwether::memory(); // or a directory, a database, a cluster
//! let election = Election::builder("reports").backend(backend).id("host-1").start().await?;
//!
//! let leadership = election.wait_for_leadership().await?;
//! println!("leading under epoch {}", leadership.epoch());
//! assert!(election.is_leader()); // cheap: one clock read, one atomic load
//!
//! election.stop().await
//! # }
//! ```
//!
//! - [`Election`] is a candidate; [`Leadership`] the right to act, for one [`Epoch`], until its deadline.
//! - [`Election::lead`] runs a future exactly as long as the leadership lasts.
//! - [`Events`], [`On`] callbacks and [`Hooks`] tell what happens.
//! - [`Store`] shares one connection among many elections.
//! - The [`guide`] helps to choose a store and timings, to fence writes, and to run in production.
//!
//! This crate only re-exports and connects; each backend is a feature.

pub mod guide;
#[cfg(feature = "cluster")]
mod ledger;
mod reroute;
mod schemes;

use std::sync::Arc;

pub use bellwether_backend::{Backend, Capabilities, MemoryStore};
pub use bellwether_core::{
    AtMost, BadName, BadSettings, Boot, Breaker, Candidate, CandidateId, Clock, DecorrelatedJitter,
    ElectionName, Epoch, ErrorKind, Exponential, Fixed, Holder, Incarnation, Options, PAUSE_MAX, Pause,
    Paused, Proof, Reason, RetryContext, RetryStrategy, Rng, Seen, Settings, StateName, StoreError, Timeline,
    Timing, TimingOptions, Wall, duration,
};
pub use bellwether_deadman::{SystemClock, boot_now};
pub use bellwether_election::{
    Answer, Connection, Election, ElectionBuilder, Error, Event, Events, Followers, HealthCheck, HookError,
    Hooks, Leadership, LeaseView, On, Over, Past, Role, Standing, Standings, Status, Store, Timekeeper, What,
    WorkGuard, candidate_json, leader_json, past_json, record_json, status_json,
};
#[cfg(feature = "metrics")]
pub use bellwether_election::{MetricRow, Metrics};
pub use schemes::{Scheme, SecretIn, open};

/// The contract of a store, for whoever writes one or asks one directly: [`Backend`], or a
/// [`Register`](backend::Register) with compare-and-set, and what their calls take and return.
pub mod backend {
    pub use bellwether_backend::*;
    pub use bellwether_core::{Ask, Bid, Grant, Outcome, ReleaseOptions, Request, Signal};
}

/// Clusters: how one is formed, who its members are, and the ledger that remembers it.
#[cfg(feature = "cluster")]
pub mod cluster {
    pub use bellwether_cluster::*;

    pub use crate::ledger::BackendLedger;
}

/// Writes that a resource refuses once a later leader has written: to a file, a key of NATS, an object of Kubernetes, or a service
/// over HTTP. Each has the feature of its store; the service has `fence-http`.
#[cfg(feature = "fence")]
pub mod fence {
    pub use bellwether_fence::*;
}

/// Elections in a directory.
#[cfg(feature = "file")]
pub mod file {
    pub use bellwether_file::{File, directory, from_url, open};
}

/// Elections on Kubernetes Leases: which cluster, which namespace, and the client that does it.
#[cfg(feature = "kubernetes-any-version")]
pub mod kubernetes {
    pub use bellwether_kubernetes::{
        Config, Environment, Kubernetes, KubernetesRegister, Objects, from_config, from_env, from_url, kube,
        options,
    };
}

/// Elections on NATS JetStream: profiles, and the health of a cluster's nodes.
#[cfg(feature = "nats")]
pub mod nats {
    pub use bellwether_nats::{Config, HealthChecker, Keys, Nats, NatsRegister, Profile, Response, from_url};
}

/// Elections on PostgreSQL: how to connect, which locks to use, and the tables for fencing.
#[cfg(feature = "postgres")]
pub mod postgres {
    pub use bellwether_postgres::{
        Config, DEFAULT_SCHEMA, Environment, FENCED, Keys, Postgres, Schema, Transport, from_config, init,
    };
}

/// Elections on a Raft cluster of Bellwether's own nodes.
#[cfg(feature = "raft")]
pub mod raft {
    #[cfg(feature = "node")]
    pub use bellwether_raft::ElectionService;
    pub use bellwether_raft::{Raft, from_url};
}

/// The README's program is compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// A store in this process's memory, for trying out.
pub fn memory() -> Store {
    Store::from(MemoryStore::default().connect(clock()))
}

/// Elections in a directory, between the processes of this machine: as [`open`] with `file:DIR`, for a path of any bytes.
///
/// # Errors
/// When the directory cannot be used; the error says what to do.
#[cfg(feature = "file")]
pub fn file(directory: impl AsRef<std::path::Path>) -> Result<Store, StoreError> {
    Ok(Store::from(bellwether_file::open(directory, clock())?))
}

/// Answers questions about health with the role and the leader of this election, whatever they are when somebody asks.
///
/// The checker holds the election from now on: stop the election, or drop both.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), bellwether::Error> {
/// use std::{sync::Arc, time::Duration};
/// use bellwether::{Election, SystemClock, nats::Nats};
///
/// let store = bellwether::open("nats://127.0.0.1?profile=cluster&create=yes")?;
/// let register = store.backend_as::<Nats>().expect("a NATS store").register();
/// let health = register.health("my-cluster", "node-1", Arc::new(SystemClock))?;
/// let election = Election::builder("my-cluster").backend(store.clone()).id("node-1").start().await?;
/// bellwether::answer_for(&election, &health);
/// health.start().await?;
///
/// let other = health.query_node("node-2", Duration::from_secs(1)).await?;
/// println!("{} is {}, and {} leads", other.node_id, other.role, other.leader);
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "nats")]
pub fn answer_for(election: &Election, health: &bellwether_nats::HealthChecker) {
    let election = election.clone();
    health.report(move || {
        let leader = election.leader().map(|id| id.to_string()).unwrap_or_default();
        (election.role().to_string(), leader)
    });
}

fn clock() -> Arc<SystemClock> {
    Arc::new(SystemClock)
}
