//! Elections on real NATS servers, current and old, alone and in a cluster.
//!
//! One program, because its stories spend their time waiting and can do so together.

mod checkup;
mod clones;
mod cluster_foreign;
mod cluster_profile;
mod conformance;
mod credentials;
mod epochs;
mod errors;
mod handover;
mod health;
mod identity;
mod leader;
mod leaf_node;
mod notes;
mod support;
mod three_nodes;
mod watching;
