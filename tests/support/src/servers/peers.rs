//! Candidates and clients of other makes for the benchmarks, which `cargo xtask env --install` builds.

use std::path::PathBuf;

use super::kubernetes::programs::{
    CLIENT_GO, ETCD_CLIENT, ETCD_ELECTION, HASHICORP_RAFT, KUBE_LEADER_ELECTION, KUBERT,
    NATS_LEADER_ELECTION, PGLOCK, Program, RIVER,
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

/// kube-leader-election, on Kubernetes.
pub fn kube_leader_election() -> PathBuf {
    built(&KUBE_LEADER_ELECTION)
}

/// kubert's `LeaseManager`, on Kubernetes.
pub fn kubert() -> PathBuf {
    built(&KUBERT)
}

fn built(program: &Program) -> PathBuf {
    program.built().unwrap_or_else(|| super::kubernetes::missing(program.name))
}
