//! Where the programs are that tests of Kubernetes and benchmarks run: etcd and its client, kube-apiserver, candidates of other makes,
//! and Helm.
//!
//! `tests/support` compiles this file too, so tests look exactly where `cargo xtask` puts them.

use std::path::PathBuf;

/// A program built from a module of this project that is outside its workspace: in Go, or in Rust.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Where the module is, from the root of the project.
    #[allow(dead_code, reason = "tests/support looks for what is built, and builds nothing")]
    pub(crate) module: &'static str,
    /// All that the build depends on, besides the toolchain.
    sources: &'static [&'static str],
}

pub(crate) const APISERVER: Program = Program {
    name: "kube-apiserver",
    module: "tests/kubernetes/kube-apiserver",
    sources: &[
        include_str!("../../../tests/kubernetes/kube-apiserver/go.mod"),
        include_str!("../../../tests/kubernetes/kube-apiserver/go.sum"),
        include_str!("../../../tests/kubernetes/kube-apiserver/main.go"),
    ],
};

pub(crate) const CLIENT_GO: Program = Program {
    name: "client-go",
    module: "tests/kubernetes/client-go",
    sources: &[
        include_str!("../../../tests/kubernetes/client-go/go.mod"),
        include_str!("../../../tests/kubernetes/client-go/go.sum"),
        include_str!("../../../tests/kubernetes/client-go/main.go"),
        include_str!("../../../tests/kubernetes/client-go/election.go"),
        include_str!("../../../tests/kubernetes/client-go/bench.go"),
    ],
};

pub(crate) const ETCD_CLIENT: Program = Program {
    name: "etcd-client",
    module: "benches/etcd-client",
    sources: &[
        include_str!("../../../benches/etcd-client/go.mod"),
        include_str!("../../../benches/etcd-client/go.sum"),
        include_str!("../../../benches/etcd-client/main.go"),
        include_str!("../../../benches/etcd-client/put.go"),
        include_str!("../../../benches/etcd-client/handover.go"),
    ],
};

/// Made of `benches/peers/candidate`, as the others are that are measured beside ours.
pub(crate) const PGLOCK: Program = Program {
    name: "pglock",
    module: "benches/peers/pglock",
    sources: &[
        include_str!("../../../benches/peers/candidate/candidate.go"),
        include_str!("../../../benches/peers/candidate/protocol.go"),
        include_str!("../../../benches/peers/pglock/go.mod"),
        include_str!("../../../benches/peers/pglock/go.sum"),
        include_str!("../../../benches/peers/pglock/main.go"),
    ],
};

pub(crate) const RIVER: Program = Program {
    name: "river",
    module: "benches/peers/river",
    sources: &[
        include_str!("../../../benches/peers/candidate/candidate.go"),
        include_str!("../../../benches/peers/candidate/protocol.go"),
        include_str!("../../../benches/peers/river/go.mod"),
        include_str!("../../../benches/peers/river/go.sum"),
        include_str!("../../../benches/peers/river/main.go"),
    ],
};

pub(crate) const NATS_LEADER_ELECTION: Program = Program {
    name: "nats-leader-election",
    module: "benches/peers/nats-leader-election",
    sources: &[
        include_str!("../../../benches/peers/candidate/candidate.go"),
        include_str!("../../../benches/peers/candidate/protocol.go"),
        include_str!("../../../benches/peers/nats-leader-election/go.mod"),
        include_str!("../../../benches/peers/nats-leader-election/go.sum"),
        include_str!("../../../benches/peers/nats-leader-election/main.go"),
    ],
};

pub(crate) const ETCD_ELECTION: Program = Program {
    name: "etcd-election",
    module: "benches/peers/etcd-election",
    sources: &[
        include_str!("../../../benches/peers/candidate/candidate.go"),
        include_str!("../../../benches/peers/candidate/protocol.go"),
        include_str!("../../../benches/peers/etcd-election/go.mod"),
        include_str!("../../../benches/peers/etcd-election/go.sum"),
        include_str!("../../../benches/peers/etcd-election/main.go"),
    ],
};

pub(crate) const HASHICORP_RAFT: Program = Program {
    name: "hashicorp-raft",
    module: "benches/peers/hashicorp-raft",
    sources: &[
        include_str!("../../../benches/peers/hashicorp-raft/go.mod"),
        include_str!("../../../benches/peers/hashicorp-raft/go.sum"),
        include_str!("../../../benches/peers/hashicorp-raft/main.go"),
    ],
};

/// Of the workspace `benches/peers/rust`, as the next one.
pub(crate) const KUBE_LEADER_ELECTION: Program = Program {
    name: "kube-leader-election-candidate",
    module: "benches/peers/rust",
    sources: &[
        include_str!("../../../benches/peers/rust/Cargo.lock"),
        include_str!("../../../benches/peers/rust/candidate/src/lib.rs"),
        include_str!("../../../benches/peers/rust/kube-leader-election/Cargo.toml"),
        include_str!("../../../benches/peers/rust/kube-leader-election/src/main.rs"),
    ],
};

pub(crate) const KUBERT: Program = Program {
    name: "kubert-candidate",
    module: "benches/peers/rust",
    sources: &[
        include_str!("../../../benches/peers/rust/Cargo.lock"),
        include_str!("../../../benches/peers/rust/candidate/src/lib.rs"),
        include_str!("../../../benches/peers/rust/kubert/Cargo.toml"),
        include_str!("../../../benches/peers/rust/kubert/src/main.rs"),
    ],
};

pub(crate) const HELM: Program = Program {
    name: "helm",
    module: "tests/kubernetes/helm",
    sources: &[
        include_str!("../../../tests/kubernetes/helm/go.mod"),
        include_str!("../../../tests/kubernetes/helm/go.sum"),
        include_str!("../../../tests/kubernetes/helm/main.go"),
    ],
};

impl Program {
    /// In the user's cache, under a hash of its sources: checkouts with the same sources share one build, and a change of them
    /// never meets an old one.
    pub(crate) fn place(&self) -> Option<PathBuf> {
        Some(cache()?.join(format!("{}-{:016x}", self.name, hash(self.sources))).join(self.name))
    }

    /// The built program, if it has been built.
    pub(crate) fn built(&self) -> Option<PathBuf> {
        self.place().filter(|program| program.is_file())
    }
}

/// `KUBEBUILDER_ASSETS`: a directory with etcd and kube-apiserver, by the convention of other tools.
pub(crate) fn assets() -> Option<PathBuf> {
    variable("KUBEBUILDER_ASSETS")
}

/// That of the assets; without assets, the one built here.
pub(crate) fn apiserver() -> Option<PathBuf> {
    match assets() {
        Some(dir) => Some(dir.join(APISERVER.name)).filter(|program| program.is_file()),
        None => APISERVER.built(),
    }
}

/// That of the assets, of the `PATH`, or the copy from Debian's package.
pub(crate) fn etcd() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let unpacked = etcd_place().map(|place| place.join("usr/bin"));
    let places = assets().into_iter().chain(std::env::split_paths(&path)).chain(unpacked);
    places.map(|dir| dir.join("etcd")).find(|program| program.is_file())
}

/// Where Debian's package of etcd is unpacked.
pub(crate) fn etcd_place() -> Option<PathBuf> {
    cache().map(|cache| cache.join("etcd"))
}

fn cache() -> Option<PathBuf> {
    let home = || variable("HOME").map(|home| home.join(".cache"));
    variable("XDG_CACHE_HOME").or_else(home).map(|cache| cache.join("bellwether"))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// FNV-1a, which stays the same from one Rust release to the next, unlike the hash of `std`.
fn hash(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
