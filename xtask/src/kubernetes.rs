//! What the tests of Kubernetes run: etcd, kube-apiserver, candidates made of client-go, and Helm; and what benchmarks run, which
//! is etcd's client and the other makes of `benches/peers`. Where they are, and how to get them.
//!
//! Nobody packages kube-apiserver for Debian, so it is built from source. That takes minutes, once: [`build_ahead`] starts it in
//! the background, and whoever needs it waits for the rest.

mod go_build;
pub(crate) mod programs;
mod rust_build;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::{apt, process};
use go_build::Build;
use programs::{
    APISERVER, CLIENT_GO, ETCD_CLIENT, ETCD_ELECTION, HASHICORP_RAFT, HELM, KUBE_LEADER_ELECTION, KUBERT,
    NATS_LEADER_ELECTION, PGLOCK, RIVER,
};

/// The build of the API server that was started ahead and that nobody has waited for yet.
static AHEAD: Mutex<Option<Build>> = Mutex::new(None);

/// What etcd says of its version, and where it is.
pub(crate) fn etcd_version() -> Option<String> {
    version(programs::etcd()?)
}

/// The same of kube-apiserver.
pub(crate) fn apiserver_version() -> Option<String> {
    version(programs::apiserver()?)
}

/// The same of the candidate.
pub(crate) fn client_go_version() -> Option<String> {
    version(CLIENT_GO.built()?)
}

/// The same of etcd's client.
pub(crate) fn etcd_client_version() -> Option<String> {
    version(ETCD_CLIENT.built()?)
}

/// What the makes that are measured beside ours say of theirs.
pub(crate) fn pglock_version() -> Option<String> {
    version(PGLOCK.built()?)
}

pub(crate) fn river_version() -> Option<String> {
    version(RIVER.built()?)
}

pub(crate) fn nats_leader_election_version() -> Option<String> {
    version(NATS_LEADER_ELECTION.built()?)
}

pub(crate) fn etcd_election_version() -> Option<String> {
    version(ETCD_ELECTION.built()?)
}

pub(crate) fn hashicorp_raft_version() -> Option<String> {
    version(HASHICORP_RAFT.built()?)
}

pub(crate) fn kube_leader_election_version() -> Option<String> {
    version(KUBE_LEADER_ELECTION.built()?)
}

pub(crate) fn kubert_version() -> Option<String> {
    version(KUBERT.built()?)
}

/// What Helm says of its version.
pub(crate) fn helm_version() -> Option<String> {
    process::version(&[HELM.built()?.to_str()?, "version", "--template", "Helm {{.Version}}"])
}

/// Out of Debian's package; nothing is set up on the machine, so no service is started.
pub(crate) fn install_etcd() -> Result<(), String> {
    let place = programs::etcd_place().ok_or("there is no home directory to keep it in")?;
    apt::unpack("etcd-server", &place)
}

/// Starts to build the API server, unless it is there.
pub(crate) fn build_ahead() {
    if programs::assets().is_none() && programs::apiserver().is_none() {
        process::say("kube-apiserver is not here yet: building it in the background, at idle priority");
        *AHEAD.lock().unwrap_or_else(PoisonError::into_inner) = Some(Build::start(&APISERVER));
    }
}

/// Builds the API server, or waits for the build that was started ahead.
pub(crate) fn install_apiserver() -> Result<(), String> {
    if let Some(dir) = programs::assets() {
        return Err(format!("KUBEBUILDER_ASSETS is {}, where there is no kube-apiserver", dir.display()));
    }
    let ahead = AHEAD.lock().unwrap_or_else(PoisonError::into_inner).take();
    ahead.unwrap_or_else(|| Build::start(&APISERVER)).wait()
}

/// Builds the candidate, which shares most packages with the API server.
pub(crate) fn install_client_go() -> Result<(), String> {
    Build::start(&CLIENT_GO).wait()
}

/// Builds etcd's client, which shares most packages with the API server.
pub(crate) fn install_etcd_client() -> Result<(), String> {
    Build::start(&ETCD_CLIENT).wait()
}

/// Builds the candidates made of pglock.
pub(crate) fn install_pglock() -> Result<(), String> {
    Build::start(&PGLOCK).wait()
}

/// Builds the candidates made of River.
pub(crate) fn install_river() -> Result<(), String> {
    Build::start(&RIVER).wait()
}

/// Builds the candidates made of NATS-Leader-Election.
pub(crate) fn install_nats_leader_election() -> Result<(), String> {
    Build::start(&NATS_LEADER_ELECTION).wait()
}

/// Builds the candidates made of etcd's election.
pub(crate) fn install_etcd_election() -> Result<(), String> {
    Build::start(&ETCD_ELECTION).wait()
}

/// Builds the nodes made of hashicorp/raft.
pub(crate) fn install_hashicorp_raft() -> Result<(), String> {
    Build::start(&HASHICORP_RAFT).wait()
}

/// Builds the candidates made of kube-leader-election.
pub(crate) fn install_kube_leader_election() -> Result<(), String> {
    rust_build::build(&KUBE_LEADER_ELECTION)
}

/// Builds the candidates made of kubert.
pub(crate) fn install_kubert() -> Result<(), String> {
    rust_build::build(&KUBERT)
}

/// Builds Helm, which shares most packages with the API server.
pub(crate) fn install_helm() -> Result<(), String> {
    Build::start(&HELM).wait()
}

fn version(program: PathBuf) -> Option<String> {
    let said = process::version(&[program.to_str()?, "--version"])?;
    Some(format!("{said} in {}", program.parent()?.display()))
}
