//! Leader election on Kubernetes Leases, which client-go candidates can share.
//!
//! ```text
//!  Lease ─ register ─┬─ api: one client, a bound on every call ─ API server
//!                    ├─ lease_object: a Lease as a record, and back
//!                    ├─ notes: past leaderships, cooldowns, in a Lease of their own
//!                    ├─ events: Events on the Lease
//!                    ├─ announce: the leader's pod (pod_label) and address (leader_address)
//!           objects ─┤  (of the program's own, beside elections)
//!                    └─ changes ─ watch: one for the namespace, or one for each Lease
//! ```
//!
//! What holds, and why:
//!
//! - **A Lease is replaced only at the version and the uid that were read**, by the server's own check. A Lease that was deleted is not
//!   made again by whoever held it.
//! - **client-go's candidates and ours exclude each other**: the spec says the same to both. They go by their own rules, so one of theirs
//!   that is paused or cut off may go on beside its successor (GUARANTEES.md).
//! - **Epochs** are the version that the claim replaces, which no other claim can have replaced.
//! - **Unknown is unknown**: a write without an answer is neither held nor denied.
//! - **Followers send nothing** while nothing changes.
//!
//! Leaves to others: expiry, claims and renewals ([`Lease`](bellwether_backend::Lease)), belief and deadlines (`bellwether-core`).

mod announce;
mod api;
mod changes;
mod checkup;
mod config;
mod errors;
mod events;
mod following;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod leader_address;
mod lease_object;
mod names;
mod notes;
mod objects;
mod pod_label;
mod register;
mod reroute;
mod watch;

pub use config::{Config, Environment};
pub use kube;
pub use leader_address::LeaderAddress;
pub use lease_object::LeaseVersion;
pub use objects::Objects;
pub use register::{Kubernetes, KubernetesRegister, from_config, from_env, from_url, options};
pub use reroute::{place, through};
