//! How a node is set up: the same flags on every node of a cluster, but for its name, its addresses and its directory.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::error::ClusterError;
use crate::names::{ClusterId, NodeName};
use crate::peer::{NoOrdinal, Peer, extract_ordinal, is_lowest_ordinal};

/// A node's settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// A stable name: in Kubernetes, the name of the pod.
    pub name: NodeName,
    /// `HOST:PORT` to listen on.
    pub bind: String,
    /// `HOST:PORT` at which others reach this node. Default: what it listens on.
    pub advertise: Option<String>,
    /// Where its log, its snapshots and its identity are.
    pub directory: PathBuf,
    /// How a cluster is formed.
    pub bootstrap: BootstrapConfig,
    /// How fast a failed leader is replaced.
    pub profile: Profile,
    /// For how long a new member has to keep up before it votes.
    pub promote_after: Duration,
    /// A cluster to give up, with everything that it held: a directory that belongs to it is put away. Refused while a peer says that the
    /// cluster has a leader. A directory that has come to another cluster since then stays, so this may be set at every start.
    pub force_new_cluster: Option<ClusterId>,
}

impl Config {
    /// A node with the usual settings, for a cluster of `expected`.
    pub fn new(
        name: NodeName,
        bind: impl Into<String>,
        directory: impl Into<PathBuf>,
        expected: usize,
    ) -> Config {
        Config {
            name,
            bind: bind.into(),
            advertise: None,
            directory: directory.into(),
            bootstrap: BootstrapConfig { expected, ..BootstrapConfig::default() },
            profile: Profile::Default,
            promote_after: Duration::from_secs(10),
            force_new_cluster: None,
        }
    }
}

/// How a cluster is formed.
#[derive(Clone, Debug)]
pub struct BootstrapConfig {
    /// Which node proposes the cluster.
    pub strategy: SeedStrategy,
    /// How many nodes form it, this one included.
    pub expected: usize,
    /// Starting fails with a join timeout after this; `None` waits forever.
    pub join_timeout: Option<Duration>,
    /// The longest pause between two attempts.
    pub join_retry: Duration,
}

impl Default for BootstrapConfig {
    fn default() -> BootstrapConfig {
        BootstrapConfig {
            strategy: SeedStrategy::LowestOrdinal,
            expected: 3,
            join_timeout: None,
            join_retry: Duration::from_secs(2),
        }
    }
}

/// Which node proposes the cluster, of those that have no state. It is a matter of speed: with several that propose, or the wrong
/// one, there is still one cluster at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeedStrategy {
    /// The one with the lowest ordinal at the end of its name, such as `app-0`.
    LowestOrdinal,
    /// The node of this name.
    Explicit(NodeName),
    /// The first in the order of ordinals or names, once as many as expected are known.
    Expect,
}

impl SeedStrategy {
    /// Whether this node proposes, when these are all the peers.
    ///
    /// # Errors
    /// When the strategy is the lowest ordinal, and a name has none.
    pub fn is_seed(&self, this: &NodeName, peers: &[Peer]) -> Result<bool, NoOrdinal> {
        match self {
            SeedStrategy::LowestOrdinal => is_lowest_ordinal(this, peers),
            SeedStrategy::Explicit(seed) => Ok(seed == this),
            SeedStrategy::Expect => {
                let order = |name: &NodeName| (extract_ordinal(name).unwrap_or(u64::MAX), name.clone());
                Ok(peers.iter().all(|peer| order(this) <= order(&peer.id)))
            }
        }
    }
}

impl fmt::Display for SeedStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SeedStrategy::LowestOrdinal => f.write_str("lowest-ordinal"),
            SeedStrategy::Explicit(name) => write!(f, "explicit:{name}"),
            SeedStrategy::Expect => f.write_str("expect"),
        }
    }
}

impl FromStr for SeedStrategy {
    type Err = ClusterError;

    fn from_str(text: &str) -> Result<SeedStrategy, ClusterError> {
        match text.split_once(':') {
            None if text == "lowest-ordinal" => Ok(SeedStrategy::LowestOrdinal),
            None if text == "expect" => Ok(SeedStrategy::Expect),
            Some(("explicit", name)) => NodeName::new(name)
                .map(SeedStrategy::Explicit)
                .map_err(|error| ClusterError::invalid(error.to_string())),
            _ => Err(ClusterError::invalid(format!(
                "{text:?} is not a way to choose the seed: use lowest-ordinal, expect or explicit:NAME"
            ))),
        }
    }
}

/// How fast a failed leader is replaced, and how much delay between nodes that tolerates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Heartbeats every 100 ms. A leader that falls silent is replaced after 0.75 to 0.9 s: for machines and networks that are busy at times.
    #[default]
    Default,
    /// Heartbeats every 20 ms. A leader that falls silent is replaced after 150 to 180 ms: for nodes that are close together and never
    /// starved.
    Fast,
}

impl FromStr for Profile {
    type Err = ClusterError;

    fn from_str(text: &str) -> Result<Profile, ClusterError> {
        match text {
            "default" => Ok(Profile::Default),
            "fast" => Ok(Profile::Fast),
            _ => Err(ClusterError::invalid(format!("{text:?} is not a profile: use default or fast"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> NodeName {
        NodeName::new(text).unwrap()
    }

    fn peers(names: &[&str]) -> Vec<Peer> {
        names.iter().map(|id| Peer::new(name(id), "h:1")).collect()
    }

    #[test]
    fn each_strategy_names_one_seed() {
        let all = ["a-2", "a-0", "a-10"];
        for strategy in
            [SeedStrategy::LowestOrdinal, SeedStrategy::Expect, SeedStrategy::Explicit(name("a-10"))]
        {
            let seeds: Vec<_> =
                all.iter().filter(|this| strategy.is_seed(&name(this), &peers(&all)).unwrap()).collect();
            let expected = if let SeedStrategy::Explicit(_) = strategy { "a-10" } else { "a-0" };
            assert_eq!(seeds, [&expected], "{strategy}");
        }
        let unnumbered = ["x", "b"];
        assert!(SeedStrategy::Expect.is_seed(&name("b"), &peers(&unnumbered)).unwrap());
        assert!(!SeedStrategy::Expect.is_seed(&name("x"), &peers(&unnumbered)).unwrap());
        assert!(SeedStrategy::LowestOrdinal.is_seed(&name("b"), &peers(&unnumbered)).is_err());
    }

    #[test]
    fn settings_are_read_as_they_are_printed() {
        for text in ["lowest-ordinal", "expect", "explicit:a-0"] {
            assert_eq!(text.parse::<SeedStrategy>().unwrap().to_string(), text);
        }
        for bad in ["", "explicit", "explicit:", "lowest", "expect:3"] {
            assert!(bad.parse::<SeedStrategy>().is_err(), "{bad}");
        }
        assert!("slow".parse::<Profile>().is_err());
    }
}
