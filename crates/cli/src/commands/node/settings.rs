//! From the flags of a node to its settings and parts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether::SystemClock;
use bellwether::cluster::transport::Security;
use bellwether::cluster::{
    BackendLedger, BootstrapConfig, BootstrapLedger, Config, DEFAULT_PORT, DnsConfig, DnsResolver, NodeName,
    NodeParts, Openraft, Peer, Resolver, StaticResolver,
};
#[cfg(feature = "kubernetes")]
use bellwether::cluster::{KubernetesAccess, KubernetesConfig, KubernetesResolver, PeerPort, PeerSource};
use bellwether::raft::ElectionService;

use crate::args::{FormingFlags, LedgerFlags, Node, PeerFlags, SecurityFlags};
use crate::backend;
use crate::exit::{Exit, Failure};

/// The name of the port, in Services and SRV records.
const PORT_NAME: &str = "raft";
/// How many nodes form a cluster, unless somebody says it: the fewest that survive the loss of one.
const EXPECTED: usize = 3;
/// A resolver answers with whom it finds. That all are known before a cluster is formed is checked where it is formed; a node that only
/// joins has to find somebody, even while others are gone.
const FOUND_MIN: usize = 1;

/// What a node is started with.
pub(super) fn settings(flags: &Node) -> Result<(Config, NodeParts), Failure> {
    let name = flags.name.clone().map_or_else(default_name, Ok)?;
    let (resolver, fixed) = resolver(&flags.peers, &flags.forming, &name)?;
    let own = fixed.iter().find(|peer| peer.id == name).map(|peer| peer.address.clone());
    let usual = || format!("127.0.0.1:{DEFAULT_PORT}");
    let config = Config {
        bind: flags.bind.clone().or_else(|| own.clone()).unwrap_or_else(usual),
        advertise: flags.advertise.clone().or(own),
        directory: data_directory(flags.data_dir.as_ref(), Some(&name))?,
        bootstrap: BootstrapConfig {
            strategy: flags.forming.seed.clone(),
            expected: expected(&flags.forming, &fixed),
            join_timeout: Some(flags.forming.join_timeout).filter(|limit| *limit > Duration::ZERO),
            join_retry: flags.forming.join_retry,
        },
        profile: flags.profile,
        promote_after: flags.promote_after,
        force_new_cluster: flags.forming.force_new_cluster,
        name,
    };
    check_advertised(&config)?;
    let service = ElectionService::new(Arc::new(SystemClock));
    let machine = service.clone();
    let parts = NodeParts {
        resolver,
        security: security(&flags.security)?,
        engines: Arc::new(Openraft),
        machine: Box::new(move || machine.machine()),
        ledger: ledger(&flags.forming.ledger)?.map(|ledger| {
            // What is given up does not count, and the ledger follows from it to what takes its place.
            let given_up = flags.forming.force_new_cluster;
            Arc::new(given_up.into_iter().fold(ledger, BackendLedger::after)) as Arc<dyn BootstrapLedger>
        }),
        service: Some(Arc::new(service)),
    };
    Ok((config, parts))
}

fn default_name() -> Result<NodeName, Failure> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let host = || {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
        Some(name.trim().to_owned()).filter(|name| !name.is_empty())
    };
    let name = variable("POD_NAME").or_else(host).or_else(|| variable("HOSTNAME"));
    let name = name.ok_or_else(|| usage("this host has no name: name the node with --name"))?;
    NodeName::new(name).map_err(|error| usage(format!("{error} (give another with --name)")))
}

/// That of the flag, or one of its own for each node, so that several on one machine need no flag for it.
pub(in crate::commands) fn data_directory(
    given: Option<&PathBuf>,
    name: Option<&NodeName>,
) -> Result<PathBuf, Failure> {
    if let Some(directory) = given {
        return Ok(directory.clone());
    }
    let name = name.cloned().map_or_else(default_name, Ok)?;
    let state = backend::state_directory().ok_or_else(|| {
        usage("there is no home directory to keep the node's data in: name a directory with --data-dir")
    })?;
    Ok(state.join("node").join(name.as_str()))
}

fn expected(forming: &FormingFlags, fixed: &[Peer]) -> usize {
    let said = forming.expect.map(|count| count as usize);
    said.unwrap_or(if fixed.is_empty() { EXPECTED } else { fixed.len() })
}

/// What finds the peers, and the list of them if it is fixed.
fn resolver(
    flags: &PeerFlags,
    forming: &FormingFlags,
    name: &NodeName,
) -> Result<(Arc<dyn Resolver>, Vec<Peer>), Failure> {
    if let Some(fixed) = &flags.peers {
        let peers = fixed.peers().to_vec();
        if !peers.iter().any(|peer| peer.id == *name) {
            tracing::info!(
                "{name}: not one of --peers ({}), so this node forms no cluster with them; it joins theirs",
                peers.iter().map(|peer| peer.id.as_str()).collect::<Vec<_>>().join(", ")
            );
        }
        return Ok((Arc::new(fixed.clone()), peers));
    }
    if let Some(service) = &flags.peers_dns {
        let (port_name, service) = srv_name(service);
        let config = DnsConfig { service, port_name, expected: FOUND_MIN, server: None };
        return Ok((Arc::new(DnsResolver::new(config)?), Vec::new()));
    }
    #[cfg(feature = "kubernetes")]
    if let Some(place) = &flags.peers_kubernetes {
        let (peers, port) = kubernetes_peers(place);
        let access = KubernetesAccess::Inferred;
        let config = KubernetesConfig { access, namespace: None, peers, port, expected: FOUND_MIN };
        return Ok((Arc::new(KubernetesResolver::new(config)?), Vec::new()));
    }
    // A node by itself has no peers to find.
    if forming.expect == Some(1) {
        return Ok((Arc::new(StaticResolver::new([])), Vec::new()));
    }
    Err(usage(
        "who are the other nodes? Name them with --peers NAME=HOST:PORT,…, or where to find them with --peers-dns or --peers-kubernetes; \
         --expect 1 is for a node without others",
    ))
}

/// `_PORT._tcp.SERVICE` in its parts; `SERVICE` has the usual port name.
fn srv_name(text: &str) -> (String, String) {
    let parts = text.strip_prefix('_').and_then(|rest| rest.split_once("._tcp."));
    let (port, service) = parts.unwrap_or((PORT_NAME, text));
    (port.to_owned(), service.to_owned())
}

#[cfg(feature = "kubernetes")]
fn kubernetes_peers(text: &str) -> (PeerSource, PeerPort) {
    // Neither a Service's name nor a selector has a colon.
    let (place, port) = text.rsplit_once(':').unwrap_or((text, PORT_NAME));
    let port = match port.parse() {
        Ok(number) => PeerPort::Number(number),
        Err(_) => PeerPort::Name(port.to_owned()),
    };
    let is_selector = place.contains(['=', '!', ',', ' ', '(', '/']);
    let peers = if is_selector { PeerSource::Pods } else { PeerSource::Service };
    (peers(place.to_owned()), port)
}

fn security(flags: &SecurityFlags) -> Result<Security, Failure> {
    let SecurityFlags { secret_file, tls_ca, tls_cert, tls_key } = flags;
    Ok(Security::from_files(secret_file.clone(), tls_ca.clone(), tls_cert.clone(), tls_key.clone())?)
}

/// The ledger that the flags name.
pub(in crate::commands) fn ledger(flags: &LedgerFlags) -> Result<Option<BackendLedger>, Failure> {
    let Some(url) = &flags.ledger else { return Ok(None) };
    crate::secrets::warn_of_password(url);
    let store = bellwether::open(url)?;
    Ok(Some(BackendLedger::new(store.backend().clone(), flags.ledger_name.clone())?))
}

/// `0.0.0.0` is a place to listen, and none to connect to.
fn check_advertised(config: &Config) -> Result<(), Failure> {
    let advertised = config.advertise.as_ref().unwrap_or(&config.bind);
    let host = advertised.rsplit_once(':').map_or(advertised.as_str(), |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_unspecified()) {
        return Err(usage(format!(
            "{advertised} is no address that others can connect to: name one with --advertise HOST:PORT"
        )));
    }
    Ok(())
}

fn usage(sentence: impl Into<String>) -> Failure {
    Failure::new(Exit::Usage, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_the_usual_port_name_unless_the_srv_name_has_another() {
        let parts = |text| srv_name(text);
        assert_eq!(parts("app"), ("raft".to_owned(), "app".to_owned()));
        assert_eq!(parts("_peer._tcp.app.prod"), ("peer".to_owned(), "app.prod".to_owned()));
        assert_eq!(parts("_peer.app"), ("raft".to_owned(), "_peer.app".to_owned()));
    }

    #[cfg(feature = "kubernetes")]
    #[test]
    fn a_selector_is_told_from_the_name_of_a_service() {
        let service = |name: &str| PeerSource::Service(name.to_owned());
        let pods = |name: &str| PeerSource::Pods(name.to_owned());
        let raft = || PeerPort::Name("raft".to_owned());
        for (text, peers, port) in [
            ("app", service("app"), raft()),
            ("app:7117", service("app"), PeerPort::Number(7117)),
            ("app=db", pods("app=db"), raft()),
            ("app=db,tier!=test:peer", pods("app=db,tier!=test"), PeerPort::Name("peer".to_owned())),
            ("app.kubernetes.io/name", pods("app.kubernetes.io/name"), raft()),
        ] {
            assert_eq!(kubernetes_peers(text), (peers, port), "{text}");
        }
    }
}
