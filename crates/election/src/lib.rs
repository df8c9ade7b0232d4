//! Elections, running: one task drives every election of a store; handles send it commands and read snapshots.
//!
//! ```text
//!  Election ──commands──▶ driver task ──calls──▶ Backend
//!     │                     │   ▲  └──one Core per election
//!     │ reads an atomic     │   └──answers, signals, timer
//!     ▼                     ▼
//!  Shared (deadline, snapshot, subscribers) ──▶ events, callbacks, hooks, in tasks of their own
//! ```
//!
//! It owns the work's life: a [`Leadership`] ends for everybody who holds it at the latest at its deadline, read from
//! the boot-time clock, even if the driver is starved. Before a release is written, every future run by
//! [`Leadership::run`] has been dropped and the demotion hook has ended. It leaves every decision to
//! [`Core`](bellwether_core::Core) and every exchange with the store to the
//! [`Backend`].

mod builder;
mod callbacks;
mod connection;
mod driver;
mod election;
mod error;
mod event;
mod health;
mod hooks;
mod leadership;
mod log;
#[cfg(feature = "metrics")]
mod metrics;
mod observer;
mod shared;
mod standing;
mod status;
mod status_json;
mod store;
mod subscription;
mod time;

pub use bellwether_backend::{Backend, Followers, Past};
pub use bellwether_core::{
    Boot, CandidateId, ElectionName, Epoch, Incarnation, Options, Proof, Reason, StateName,
};
pub use builder::ElectionBuilder;
pub use callbacks::{Answer, On};
pub use connection::Connection;
pub use election::Election;
pub use error::Error;
pub use event::{Event, What};
pub use health::HealthCheck;
pub use hooks::{HookError, Hooks};
pub use leadership::{Leadership, Over, WorkGuard};
#[cfg(feature = "metrics")]
pub use metrics::{MetricRow, Metrics};
pub use standing::{Standing, Standings};
pub use status::{LeaseView, Role, Status};
pub use status_json::{candidate_json, leader_json, past_json, record_json, status_json};
pub use store::Store;
pub use subscription::{EVENTS_WAITING_MAX, Events};
pub use time::Timekeeper;
