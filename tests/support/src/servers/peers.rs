//! Candidates and clients of other makes for the benchmarks, which `cargo xtask env --install` builds.

use std::path::PathBuf;

use super::kubernetes::programs::{
    CLIENT_GO, ETCD_CLIENT, ETCD_ELECTION, GoProgram, HASHICORP_RAFT, NATS_LEADER_ELECTION, PGLOCK, RIVER,
};

/// `cirello.io/pglock`, on PostgreSQL.
pub fn pglock() -> PathBuf {
    built(&PGLOCK)
}

/// River's leadership, on PostgreSQL.
pub fn river() -> PathBuf {
    built(&RIVER)
}

/// `github.com/ali-assar/NATS-Leader-Election`.
pub fn nats_leader_election() -> PathBuf {
    built(&NATS_LEADER_ELECTION)
}

/// client-go's `leaderelection`, on Kubernetes.
pub fn client_go() -> PathBuf {
    built(&CLIENT_GO)
}

/// The election of etcd's own client library.
pub fn etcd_election() -> PathBuf {
    built(&ETCD_ELECTION)
}

/// `hashicorp/raft`, a node of a cluster.
pub fn hashicorp_raft() -> PathBuf {
    built(&HASHICORP_RAFT)
}

/// Clients made of etcd's own library.
pub fn etcd_client() -> PathBuf {
    built(&ETCD_CLIENT)
}

fn built(program: &GoProgram) -> PathBuf {
    program.built().unwrap_or_else(|| super::kubernetes::missing(program.name))
}
