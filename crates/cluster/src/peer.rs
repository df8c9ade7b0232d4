//! A node that this one may talk to, and which of several has the lowest ordinal.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::NodeName;

/// A node by its name, and where it is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Peer {
    /// Its name.
    pub id: NodeName,
    /// `HOST:PORT`. The host is resolved at every dial, so that it may change its address.
    pub address: String,
}

impl Peer {
    /// That node at that address.
    pub fn new(id: NodeName, address: impl Into<String>) -> Peer {
        Peer { id, address: address.into() }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.id, self.address)
    }
}

/// The ordinal at the end of a pod's name: 0 for `app-0`, 12 for `app-12`.
///
/// # Errors
/// When the name does not end with `-` and a number.
pub fn extract_ordinal(name: &NodeName) -> Result<u64, NoOrdinal> {
    let no_ordinal = || NoOrdinal(name.clone());
    let (_, digits) = name.as_str().rsplit_once('-').ok_or_else(no_ordinal)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten().ok_or_else(no_ordinal)
}

/// Whether this node's ordinal is below those of all `peers`. A peer with this node's own name is this node.
///
/// # Errors
/// When one of the names has no ordinal.
pub fn is_lowest_ordinal(this: &NodeName, peers: &[Peer]) -> Result<bool, NoOrdinal> {
    let own = extract_ordinal(this)?;
    for peer in peers.iter().filter(|peer| peer.id != *this) {
        if extract_ordinal(&peer.id)? <= own {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A name without a number at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoOrdinal(NodeName);

impl fmt::Display for NoOrdinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the node name {} does not end with an ordinal such as -0: rename the node, or name the seed explicitly",
            self.0
        )
    }
}

impl std::error::Error for NoOrdinal {}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> NodeName {
        NodeName::new(text).unwrap()
    }

    #[test]
    fn the_ordinal_is_what_a_stateful_set_appends() {
        assert_eq!(extract_ordinal(&name("app-0")), Ok(0));
        assert_eq!(extract_ordinal(&name("my-app-12")), Ok(12));
        for bad in ["app", "app0", "app-", "app-x", "app-1x", "app-99999999999999999999"] {
            assert!(extract_ordinal(&name(bad)).unwrap_err().to_string().contains(bad));
        }
    }

    #[test]
    fn the_lowest_is_below_all_others_by_number_and_not_by_letter() {
        let peers = |names: &[&str]| names.iter().map(|id| Peer::new(name(id), "h:1")).collect::<Vec<_>>();
        assert_eq!(is_lowest_ordinal(&name("a-2"), &peers(&["a-10", "a-2"])), Ok(true));
        assert_eq!(is_lowest_ordinal(&name("a-10"), &peers(&["a-10", "a-2"])), Ok(false));
        assert_eq!(is_lowest_ordinal(&name("a-0"), &[]), Ok(true));
        // Two sets whose ordinals meet: neither counts as the lowest.
        assert_eq!(is_lowest_ordinal(&name("a-0"), &peers(&["b-0"])), Ok(false));
        assert!(is_lowest_ordinal(&name("a-0"), &peers(&["b"])).is_err());
    }
}
