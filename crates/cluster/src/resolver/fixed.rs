//! Peers from a fixed list.

use std::str::FromStr;

use futures_util::future::BoxFuture;

use super::{ResolveError, Resolver, address};
use crate::error::ClusterError;
use crate::names::NodeName;
use crate::peer::Peer;

/// A fixed list.
///
/// As text it is `NAME=HOST:PORT`, separated by commas, with IPv6 addresses in brackets:
///
/// ```
/// use bellwether_cluster::StaticResolver;
///
/// let peers: StaticResolver = "app-0=10.0.0.1:7000, app-1=db.example.org:7000, app-2=[fd00::1]:7000".parse()?;
/// # Ok::<(), bellwether_cluster::ClusterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticResolver(Vec<Peer>);

impl StaticResolver {
    /// These peers.
    pub fn new(peers: impl IntoIterator<Item = Peer>) -> StaticResolver {
        StaticResolver(peers.into_iter().collect())
    }

    /// The list.
    pub fn peers(&self) -> &[Peer] {
        &self.0
    }
}

impl Resolver for StaticResolver {
    fn resolve(&self) -> BoxFuture<'_, Result<Vec<Peer>, ResolveError>> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}

impl FromStr for StaticResolver {
    type Err = ClusterError;

    fn from_str(text: &str) -> Result<StaticResolver, ClusterError> {
        let mut peers: Vec<Peer> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let peer = peer(part)?;
            if let Some(same) = peers.iter().find(|other| other.id == peer.id) {
                let (id, one, other) = (&peer.id, &same.address, &peer.address);
                return Err(ClusterError::invalid(format!(
                    "the peer {id} is there twice, at {one} and at {other}: give every node a name of its own"
                )));
            }
            if let Some(same) = peers.iter().find(|other| other.address == peer.address) {
                let (one, other, address) = (&same.id, &peer.id, &peer.address);
                return Err(ClusterError::invalid(format!(
                    "the peers {one} and {other} are both at {address}: give every node an address of its own"
                )));
            }
            peers.push(peer);
        }
        Ok(StaticResolver(peers))
    }
}

fn peer(part: &str) -> Result<Peer, ClusterError> {
    let invalid = |why: String| ClusterError::invalid(format!("the peer {part:?} cannot be read: {why}"));
    let Some((name, at)) = part.split_once('=') else {
        return Err(match part {
            "" => ClusterError::invalid("a peer is missing: write NAME=HOST:PORT, separated by commas"),
            _ => invalid("write NAME=HOST:PORT".to_owned()),
        });
    };
    let id = NodeName::new(name).map_err(|error| invalid(error.to_string()))?;
    match address::wrong(at) {
        Some(why) => Err(invalid(why)),
        None => Ok(Peer::new(id, at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[tokio::test]
    async fn a_list_is_read_as_it_is_written() {
        let resolver: StaticResolver = "a-0=h:1, a-1=[::1]:2,a-2=10.0.0.1:3".parse().unwrap();
        let peers = resolver.resolve().await.unwrap();
        let printed: Vec<String> = peers.iter().map(ToString::to_string).collect();
        assert_eq!(printed, ["a-0=h:1", "a-1=[::1]:2", "a-2=10.0.0.1:3"]);
        assert_eq!(printed.join(",").parse(), Ok(resolver));
    }

    #[test]
    fn mistakes_are_named_with_the_peer_that_has_them() {
        for (bad, part) in [
            ("", "a peer is missing"),
            ("a=h:1,", "a peer is missing"),
            ("a", "\"a\" cannot be read: write NAME=HOST:PORT"),
            ("a=h", "\"a=h\" cannot be read: \"h\" has no port"),
            ("a=::1:7", "in brackets"),
            ("=h:1", "not a node name"),
            ("a b=h:1", "not a node name"),
            ("a=h:1,a=i:1", "the peer a is there twice, at h:1 and at i:1"),
            ("a=h:1,b=h:1", "the peers a and b are both at h:1"),
        ] {
            let error = bad.parse::<StaticResolver>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(part), "{bad}: {error}");
        }
    }
}
