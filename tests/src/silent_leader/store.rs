//! The stores on which leaders fall silent, on machines of their own.

use std::fmt;
use std::time::Duration;

use bellwether_support::netns::{Network, Node};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::servers::{kubernetes, postgres};
use bellwether_support::until_blocking;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::{SLACK, SLACK_AFTER_DEATH, Silence, TTL};

/// The stream of the bucket `elections`, which two profiles hold theirs in.
const STREAM: &str = "KV_elections";

/// Names of keys and the shape of records on NATS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// One bucket of Bellwether's own, no expiry on the server.
    Native,
    /// A bucket for each election, which forgets records after two ttls.
    Cluster,
    /// One bucket, which forgets records after one ttl.
    Leader,
}

/// What elections are held on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PostgreSQL.
    Postgres,
    /// NATS servers, with as many replicas as there are servers.
    Nats {
        /// The profile.
        profile: Profile,
        /// Which servers.
        version: Version,
        /// How many of them, each on a machine of its own.
        nodes: usize,
    },
    /// A Lease of a Kubernetes API server.
    Kubernetes {
        /// Whether each watch lasts for a second only, so that some end while a dead leader is waited for.
        short_watches: bool,
    },
}

const ONE_NODE: &[Silence] = &[Silence::Stopped, Silence::CutOff, Silence::Killed];
const THREE_NODES: &[Silence] =
    &[Silence::Stopped, Silence::CutOff, Silence::CutOffWithServer, Silence::Killed];

impl Kind {
    /// This profile, on so many current servers.
    pub fn nats(profile: Profile, nodes: usize) -> Kind {
        Kind::Nats { profile, version: Version::Current, nodes }
    }

    /// Every way in which a leader can fall silent here.
    pub fn ways(self) -> &'static [Silence] {
        match self {
            Kind::Postgres => &[Silence::Stopped, Silence::CutOff],
            // Where every election has a stream, one server is the leader of a third of them: there is none to lose.
            Kind::Nats { nodes: 1, .. } | Kind::Nats { profile: Profile::Cluster, .. } => ONE_NODE,
            Kind::Kubernetes { .. } => ONE_NODE,
            Kind::Nats { .. } => THREE_NODES,
        }
    }

    /// How long a run goes on before anything is done to its leader. Where every election has a stream of its own, on several
    /// servers, it has only just been made: for some seconds the servers may tell followers of a renewal more than a second late,
    /// and who hears late waits longer.
    pub(super) fn settles(self) -> Duration {
        match self {
            Kind::Nats { profile: Profile::Cluster, nodes: 2.., .. } => Duration::from_secs(4),
            _ => Duration::ZERO,
        }
    }

    /// The longest that a successor may take.
    pub fn bound(self, how: Silence) -> Duration {
        match (self, how) {
            // Whoever follows hears of a renewal when etcd has flushed it and the watch has told it.
            (Kind::Kubernetes { .. }, _) => TTL + SLACK,
            (_, Silence::Killed) => TTL + SLACK_AFTER_DEATH,
            _ => TTL + SLACK,
        }
    }

    pub(super) fn nodes(self) -> usize {
        match self {
            Kind::Postgres | Kind::Kubernetes { .. } => 1,
            Kind::Nats { nodes, .. } => nodes,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (profile, version) = match self {
            Kind::Postgres => return f.pad("postgres"),
            Kind::Kubernetes { short_watches: false } => return f.pad("kubernetes"),
            Kind::Kubernetes { short_watches: true } => return f.pad("watch=1s"),
            Kind::Nats { profile, version, .. } => (profile, version),
        };
        let profile = match profile {
            Profile::Native => "native",
            Profile::Cluster => "cluster",
            Profile::Leader => "leader",
        };
        match version {
            Version::Current => f.pad(profile),
            Version::Old => f.pad(&format!("{profile} on 2.9")),
        }
    }
}

/// A store that has just been started. Ended when dropped.
pub(super) struct Store {
    servers: Servers,
    machines: Vec<Node>,
    options: String,
    runtime: Runtime,
}

enum Servers {
    Postgres(Box<postgres::Server>),
    Nats(Vec<Server>),
    Kubernetes(Box<kubernetes::Server>),
}

impl Store {
    pub(super) fn start(kind: Kind, network: &mut Network) -> Store {
        let machines: Vec<Node> = (0..kind.nodes()).map(|_| network.node()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let servers = runtime.block_on(async {
            match kind {
                Kind::Postgres => {
                    let server = postgres::Server::start_with(TTL, Some(&machines[0]), &[]).await;
                    Servers::Postgres(Box::new(server))
                }
                Kind::Nats { version, nodes: 1, .. } => {
                    Servers::Nats(vec![Server::start_on(version, &machines[0]).await])
                }
                Kind::Nats { version, .. } => Servers::Nats(Server::cluster_on(version, &machines).await),
                Kind::Kubernetes { .. } => {
                    Servers::Kubernetes(Box::new(kubernetes::Server::start_on(&machines[0]).await))
                }
            }
        });
        let options = match kind {
            Kind::Postgres | Kind::Kubernetes { short_watches: false } => String::new(),
            Kind::Kubernetes { short_watches: true } => "&watch=1s".to_owned(),
            Kind::Nats { profile, nodes, .. } => {
                let profile = match profile {
                    Profile::Native => "profile=native&bucket=elections",
                    Profile::Cluster => "profile=cluster",
                    Profile::Leader => "profile=leader&bucket=elections",
                };
                format!("?{profile}&create=yes&replicas={nodes}&ping={}ms", TTL.as_millis() / 5)
            }
        };
        Store { servers, machines, options, runtime }
    }

    /// All of its servers in one URL.
    pub(super) fn url(&self) -> String {
        match &self.servers {
            Servers::Postgres(server) => server.url(),
            Servers::Nats(servers) => format!("{}{}", Server::url_of_all(servers), self.options),
            Servers::Kubernetes(server) => {
                format!("{}{}", server.backend(kubernetes::ADMIN, "default"), self.options)
            }
        }
    }

    /// Only this one of its servers.
    pub(super) fn url_of(&self, server: usize) -> String {
        match &self.servers {
            Servers::Postgres(_) | Servers::Kubernetes(_) => self.url(),
            Servers::Nats(servers) => format!("{}{}", servers[server].url(), self.options),
        }
    }

    pub(super) fn machine(&self, server: usize) -> &Node {
        &self.machines[server]
    }

    /// A server of three without which the bucket's stream goes on at once, because another leads it: when all of them agree on
    /// who that is, and by its word none lags behind. Somebody has led already, so that there is a bucket.
    pub(super) fn spare(&self) -> usize {
        let Servers::Nats(servers) = &self.servers else { return 0 };
        until_blocking(|| {
            let told: Vec<Value> = servers.iter().map(|server| self.stream(server)).collect();
            let leaders: Vec<Option<usize>> = told.iter().map(leader_of).collect();
            let agreed = leaders[0].filter(|leader| leaders.iter().all(|one| *one == Some(*leader)));
            let leader = agreed.filter(|leader| none_lags(&told[*leader]));
            let spare = leader.map(|leader| (leader + 1) % servers.len());
            spare.ok_or_else(|| format!("the servers do not agree on who leads the stream: {told:?}"))
        })
    }

    /// How the bucket's stream is spread, by one server's word.
    fn stream(&self, asked: &Server) -> Value {
        let all = self.runtime.block_on(asked.monitored("/jsz?accounts=true&streams=true"));
        let streams = all["account_details"][0]["stream_detail"].as_array();
        let found = streams.and_then(|all| all.iter().find(|stream| stream["name"] == STREAM));
        found.map_or(Value::Null, |stream| stream["cluster"].clone())
    }
}

fn leader_of(stream: &Value) -> Option<usize> {
    stream["leader"].as_str()?.strip_prefix('n')?.parse().ok()
}

fn none_lags(stream: &Value) -> bool {
    let lags = |replica: &Value| replica["current"] != true || replica["offline"] == true;
    stream["replicas"].as_array().is_some_and(|replicas| !replicas.iter().any(lags))
}
