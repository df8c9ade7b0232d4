//! Peers from SRV records: `_PORTNAME._tcp.SERVICE`, as the DNS of Kubernetes has them for a headless Service.
//!
//! A peer's name is the first label of the record's target, the pod's host name in a StatefulSet; its address is the target with the
//! record's port. Names are in lower case, since servers may spell them as they like. Priority and weight mean nothing between peers.
//!
//! The servers are asked one after the other, each by itself, so that an error can say who answered what. The first that knows the name, or
//! knows that it does not exist, is believed. Nothing is kept: each call asks again.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::rdata::SRV;
use hickory_resolver::proto::rr::{Name, RData};
use hickory_resolver::system_conf::read_system_conf;

use super::{ResolveError, Resolver, complete};
use crate::error::ClusterError;
use crate::names::NodeName;
use crate::peer::Peer;

/// How long one server may take for all that is asked of it: a name, its search domains, and a second try by TCP.
const SERVER_LIMIT: Duration = Duration::from_secs(5);

/// How long one question waits for its answer. It is asked twice, since a datagram may be lost.
const QUESTION_LIMIT: Duration = Duration::from_secs(2);

/// Servers that are asked: as many as the C library reads from `/etc/resolv.conf`.
const SERVERS_MAX: usize = 3;

/// Which SRV records to look up, and how many peers there will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsConfig {
    /// The name that the records belong to: a headless Service such as `app` or `app.prod.svc.cluster.local`. The search domains of this
    /// machine apply, unless the name ends with a dot.
    pub service: String,
    /// The name of the port, such as `raft` for `_raft._tcp`.
    pub port_name: String,
    /// How many peers there will be. While there are fewer, [`Resolver::resolve`] returns an error that says so.
    pub expected: usize,
    /// The server to ask, by UDP and TCP. `None`: those of `/etc/resolv.conf`. A server that is named here has no search domains, so the
    /// service is then named in full.
    pub server: Option<SocketAddr>,
}

/// Finds peers by SRV records.
///
/// In Kubernetes, the headless Service needs `publishNotReadyAddresses: true`: nodes are ready only after they have found each other.
#[derive(Clone, Debug)]
pub struct DnsResolver {
    name: Name,
    expected: usize,
    server: Option<SocketAddr>,
}

impl DnsResolver {
    /// Checks the names; asks nothing yet.
    ///
    /// # Errors
    /// When the service or the port has no name that DNS could hold, or no peer is expected.
    pub fn new(config: DnsConfig) -> Result<DnsResolver, ClusterError> {
        let DnsConfig { service, port_name, expected, server } = config;
        let is_label = |label: &str| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            !label.is_empty() && label.bytes().all(is_part)
        };
        let port = port_name.strip_prefix('_').unwrap_or(&port_name);
        if !is_label(port) {
            return Err(ClusterError::invalid(format!(
                "{port_name:?} is not the name of a port: write the name that the Service gives it, such as raft"
            )));
        }
        let labels = service.strip_suffix('.').unwrap_or(&service);
        let name = format!("_{port}._tcp.{service}").to_ascii_lowercase();
        let name = Name::from_ascii(name).ok().filter(|_| labels.split('.').all(is_label));
        let name = name.ok_or_else(|| {
            ClusterError::invalid(format!(
                "{service:?} is not a DNS name: write the headless Service, such as app.prod.svc.cluster.local"
            ))
        })?;
        if expected == 0 {
            return Err(ClusterError::invalid("no peer is expected: expect at least 1"));
        }
        Ok(DnsResolver { name, expected, server })
    }

    async fn ask(&self) -> Result<Vec<Peer>, ResolveError> {
        let (config, options) = self.settings()?;
        let mut failures = Vec::new();
        for server in config.name_servers.iter().take(SERVERS_MAX) {
            let at = address(server);
            let single = ResolverConfig::from_parts(
                config.domain.clone(),
                config.search.clone(),
                vec![server.clone()],
            );
            match self.ask_one(single, options.clone()).await {
                Answer::Records(records) => return self.peers(&records),
                Answer::NotThere => {
                    return Err(ResolveError::passing(format!(
                        "{self} has no SRV records yet, says the DNS server {at}"
                    )));
                }
                Answer::Failed(failure) => failures.push((at, failure)),
            }
        }
        Err(self.all_failed(&failures))
    }

    fn settings(&self) -> Result<(ResolverConfig, ResolverOpts), ResolveError> {
        let (config, mut options) = match self.server {
            Some(server) => {
                let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
                    connection.port = server.port();
                    connection
                });
                let server = NameServerConfig::new(server.ip(), true, connections.into());
                (ResolverConfig::from_name_servers(vec![server]), ResolverOpts::default())
            }
            None => read_system_conf().map_err(|error| {
                ResolveError::permanent(format!(
                    "/etc/resolv.conf names no DNS server to ask for {self}: {error}; mend the file, or name a server"
                ))
            })?,
        };
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        options.timeout = QUESTION_LIMIT;
        options.attempts = 2;
        Ok((config, options))
    }

    async fn ask_one(&self, config: ResolverConfig, options: ResolverOpts) -> Answer {
        let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        let resolver = match builder.with_options(options).build() {
            Ok(resolver) => resolver,
            Err(error) => return Answer::Failed(Failure::Other(error.to_string())),
        };
        match tokio::time::timeout(SERVER_LIMIT, resolver.srv_lookup(self.name.clone())).await {
            Ok(Ok(lookup)) => {
                let records: Vec<SRV> = lookup.answers().iter().filter_map(srv).cloned().collect();
                if records.is_empty() { Answer::NotThere } else { Answer::Records(records) }
            }
            Ok(Err(error)) => Answer::of(error),
            Err(_) => Answer::Failed(Failure::Silent),
        }
    }

    fn peers(&self, records: &[SRV]) -> Result<Vec<Peer>, ResolveError> {
        let mut peers = Vec::new();
        // A lone dot is how a zone says that there is no such service.
        for record in records.iter().filter(|record| !record.target.is_root()) {
            let target = record.target.to_ascii().to_ascii_lowercase();
            let host = target.strip_suffix('.').unwrap_or(&target);
            let id = NodeName::new(host.split('.').next().unwrap_or_default()).map_err(|error| {
                ResolveError::permanent(format!("an SRV record of {self} points to {target}, and {error}"))
            })?;
            peers.push(Peer::new(id, format!("{host}:{}", record.port)));
        }
        complete(peers, self.expected, &self.to_string())
    }

    fn all_failed(&self, failures: &[(SocketAddr, Failure)]) -> ResolveError {
        let said: Vec<String> = failures.iter().map(|(at, failure)| failure.sentence(*at)).collect();
        let said = said.join("; ");
        let refused = |(_, failure): &(SocketAddr, Failure)| matches!(failure, Failure::Refused);
        if failures.iter().all(refused) {
            return ResolveError::permanent(format!(
                "{self} cannot be looked up: {said}; let the server answer this machine for that name, or name another server"
            ));
        }
        ResolveError::passing(format!("{self} cannot be looked up at the moment: {said}"))
    }
}

impl std::fmt::Display for DnsResolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name.to_ascii())
    }
}

impl Resolver for DnsResolver {
    fn resolve(&self) -> BoxFuture<'_, Result<Vec<Peer>, ResolveError>> {
        Box::pin(self.ask())
    }
}

/// What one server said.
enum Answer {
    Records(Vec<SRV>),
    /// The name does not exist, or has no such records.
    NotThere,
    Failed(Failure),
}

impl Answer {
    fn of(error: NetError) -> Answer {
        match error {
            NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
                ResponseCode::NoError | ResponseCode::NXDomain => Answer::NotThere,
                code => Answer::Failed(Failure::of(code)),
            },
            NetError::Dns(DnsError::ResponseCode(code)) => Answer::Failed(Failure::of(code)),
            NetError::Timeout => Answer::Failed(Failure::Silent),
            error => Answer::Failed(Failure::Other(error.to_string())),
        }
    }
}

/// Why a server does not know.
enum Failure {
    /// It does not answer this machine, or not for this name. Somebody has to mend that.
    Refused,
    Silent,
    Code(ResponseCode),
    Other(String),
}

impl Failure {
    fn of(code: ResponseCode) -> Failure {
        if code == ResponseCode::Refused { Failure::Refused } else { Failure::Code(code) }
    }

    fn sentence(&self, at: SocketAddr) -> String {
        match self {
            Failure::Refused => format!("the DNS server {at} refused (REFUSED)"),
            Failure::Silent => format!("the DNS server {at} did not answer in time"),
            Failure::Code(code) => format!("the DNS server {at} failed ({})", code.to_str()),
            Failure::Other(why) => format!("the DNS server {at} cannot be asked ({why})"),
        }
    }
}

fn srv(record: &hickory_resolver::proto::rr::Record) -> Option<&SRV> {
    match &record.data {
        RData::SRV(srv) => Some(srv),
        _ => None,
    }
}

/// Where a server is, for people.
fn address(server: &NameServerConfig) -> SocketAddr {
    let port = server.connections.first().map_or(53, |connection| connection.port);
    SocketAddr::new(server.ip, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(service: &str, port_name: &str) -> DnsConfig {
        DnsConfig { service: service.to_owned(), port_name: port_name.to_owned(), expected: 3, server: None }
    }

    #[test]
    fn the_name_is_that_of_the_service_with_the_port_in_front() {
        for (service, port, name) in [
            ("app", "raft", "_raft._tcp.app"),
            ("App.prod.svc.cluster.local.", "raft", "_raft._tcp.app.prod.svc.cluster.local."),
            ("app.example.org", "_raft", "_raft._tcp.app.example.org"),
        ] {
            assert_eq!(DnsResolver::new(config(service, port)).unwrap().to_string(), name);
        }
    }

    #[test]
    fn a_target_is_a_peer_whatever_its_case_and_a_lone_dot_is_none() {
        let resolver = DnsResolver::new(DnsConfig { expected: 1, ..config("app", "raft") }).unwrap();
        let record = |target: &str| SRV::new(1, 2, 7000, Name::from_ascii(target).unwrap());
        let peers =
            resolver.peers(&[record("App-0.App.Example."), record("app-0.app.example."), record(".")]);
        let printed: Vec<String> = peers.unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(printed, ["app-0=app-0.app.example:7000"]);
        let none = resolver.peers(&[record(".")]).unwrap_err();
        assert!(none.to_string().contains("0 of 1 expected peers"), "{none}");
    }

    #[test]
    fn names_that_dns_cannot_hold_are_refused_with_what_to_write() {
        let long = "x".repeat(64);
        for bad in ["", ".", "a..b", "a b", "a/b", "a:53", "é", long.as_str()] {
            let error = DnsResolver::new(config(bad, "raft")).unwrap_err();
            assert!(error.to_string().contains("headless Service"), "{bad}: {error}");
        }
        for bad in ["", "_", "a.b", "a b"] {
            let error = DnsResolver::new(config("app", bad)).unwrap_err();
            assert!(error.to_string().contains("name of a port"), "{bad}: {error}");
        }
        let nobody = DnsResolver::new(DnsConfig { expected: 0, ..config("app", "raft") });
        assert!(nobody.unwrap_err().to_string().contains("expect at least 1"));
    }
}
