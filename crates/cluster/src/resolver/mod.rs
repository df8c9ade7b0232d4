//! Who the peers are, and where: configuration and DNS, never whether they are up.
//!
//! | resolver | where the peers are written | feature |
//! |---|---|---|
//! | [`StaticResolver`] | a fixed list | – |
//! | `DnsResolver` | SRV records, as those of a headless Service | `dns` |
//! | `KubernetesResolver` | the pods or EndpointSlices of a cluster | `kubernetes` |
//!
//! A resolver that is told how many peers to expect says so while there are fewer. It is asked again and again, keeps nothing between two
//! calls that could be out of date, and ends every call in bounded time.

pub(crate) mod address;
#[cfg(feature = "dns")]
mod dns;
mod fixed;
#[cfg(feature = "kubernetes-any-version")]
pub(crate) mod kubernetes;

use std::fmt;

use futures_util::future::BoxFuture;

use crate::peer::Peer;

#[cfg(feature = "dns")]
pub use dns::{DnsConfig, DnsResolver};
pub use fixed::StaticResolver;
#[cfg(feature = "kubernetes-any-version")]
pub use kubernetes::{KubernetesAccess, KubernetesConfig, KubernetesResolver, PeerPort, PeerSource};

/// Finds the peers of a cluster.
pub trait Resolver: Send + Sync + 'static {
    /// The peers as they are known now, this node included or not. Asked again and again: an answer may be incomplete, and silence of the
    /// source is an error that passes.
    fn resolve(&self) -> BoxFuture<'_, Result<Vec<Peer>, ResolveError>>;
}

/// Why peers are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveError {
    message: String,
    is_permanent: bool,
}

impl ResolveError {
    /// An error that may pass by itself: a server that does not answer, a name that does not exist yet.
    pub fn passing(message: impl Into<String>) -> ResolveError {
        ResolveError { message: message.into(), is_permanent: false }
    }

    /// An error that somebody has to mend: a server that refuses, a permission that is missing.
    pub fn permanent(message: impl Into<String>) -> ResolveError {
        ResolveError { message: message.into(), is_permanent: true }
    }

    /// Whether somebody has to mend it. A node keeps asking all the same, and says so.
    pub fn is_permanent(&self) -> bool {
        self.is_permanent
    }
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ResolveError {}

/// The peers that a directory service listed, in the order of their names, if there are enough. `place` is what was asked.
#[cfg(any(feature = "dns", feature = "kubernetes-any-version"))]
fn complete(mut peers: Vec<Peer>, expected: usize, place: &str) -> Result<Vec<Peer>, ResolveError> {
    peers.sort();
    peers.dedup();
    if let Some(two) = peers.windows(2).find(|two| two[0].id == two[1].id) {
        let (id, one, other) = (&two[0].id, &two[0].address, &two[1].address);
        return Err(ResolveError::passing(format!("{place} lists {id} twice, at {one} and at {other}")));
    }
    if peers.len() < expected {
        let names: Vec<&str> = peers.iter().map(|peer| peer.id.as_str()).collect();
        let listed = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        let count = peers.len();
        return Err(ResolveError::passing(format!(
            "{place} lists {count} of {expected} expected peers{listed}"
        )));
    }
    Ok(peers)
}

#[cfg(all(test, any(feature = "dns", feature = "kubernetes-any-version")))]
mod tests {
    use super::*;
    use crate::names::NodeName;

    fn peers(all: &[(&str, &str)]) -> Vec<Peer> {
        all.iter().map(|(id, address)| Peer::new(NodeName::new(*id).unwrap(), *address)).collect()
    }

    #[test]
    fn fewer_than_expected_are_counted_and_named() {
        let found = complete(peers(&[("b", "b:1"), ("a", "a:1"), ("b", "b:1")]), 3, "here");
        let error = found.unwrap_err();
        assert_eq!(error.to_string(), "here lists 2 of 3 expected peers (a, b)");
        assert!(!error.is_permanent());
        let error = complete(Vec::new(), 1, "here").unwrap_err();
        assert_eq!(error.to_string(), "here lists 0 of 1 expected peers");
    }

    #[test]
    fn more_than_expected_are_all_returned_by_name() {
        let found = complete(peers(&[("b", "b:1"), ("a", "a:1")]), 1, "here");
        assert_eq!(found, Ok(peers(&[("a", "a:1"), ("b", "b:1")])));
    }

    #[test]
    fn one_name_at_two_places_is_nobody() {
        let error = complete(peers(&[("a", "x:1"), ("a", "y:1")]), 1, "here").unwrap_err();
        assert_eq!(error.to_string(), "here lists a twice, at x:1 and at y:1");
    }
}
