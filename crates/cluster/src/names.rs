//! Who is who: the name of a node, and the two random numbers that tell a node and a cluster from every other.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The label of a node: stable, readable, and the same after its disk was replaced. In Kubernetes, the name of the pod.
///
/// A name does not identify a member of a cluster. That is the [`NodeId`], which is new with every data directory: a name that comes back
/// with another node id is a replacement, and not the member that had the name before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(String);

/// The longest name: as long as a DNS name may be.
const NAME_MAX_BYTES: usize = 253;

impl NodeName {
    /// A name of letters, digits, `-`, `_` and `.`, beginning with a letter or digit.
    ///
    /// # Errors
    /// When the name is empty, too long, or contains anything else.
    pub fn new(name: impl Into<String>) -> Result<NodeName, InvalidName> {
        let name = name.into();
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let begins = name.chars().next().is_some_and(|first| first.is_ascii_alphanumeric());
        if begins && name.len() <= NAME_MAX_BYTES && name.chars().all(is_part) {
            Ok(NodeName(name))
        } else {
            Err(InvalidName(name))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for NodeName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<NodeName, InvalidName> {
        NodeName::new(text)
    }
}

impl TryFrom<String> for NodeName {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<NodeName, InvalidName> {
        NodeName::new(text)
    }
}

impl From<NodeName> for String {
    fn from(name: NodeName) -> String {
        name.0
    }
}

/// A text that is not the name of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidName(String);

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a node name: use up to {NAME_MAX_BYTES} letters, digits, `-`, `_` and `.`, beginning with a letter or digit",
            self.0
        )
    }
}

impl std::error::Error for InvalidName {}

/// A member of a cluster: random, created with its data directory, and never used again after that directory is lost.
///
/// Raft counts votes by it. A node that came back under its old number with an empty disk would vote twice, so it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(u64);

impl NodeId {
    /// The id of this number, which the caller has drawn at random.
    pub const fn from_random(number: u64) -> NodeId {
        NodeId(number)
    }

    /// The number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for NodeId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<NodeId, InvalidId> {
        hex(text, 16)
            .and_then(|()| u64::from_str_radix(text, 16).ok())
            .map(NodeId)
            .ok_or_else(|| InvalidId::new(text, 16))
    }
}

/// A cluster: random, created once for a formation, and in every frame that its members exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClusterId(u128);

impl ClusterId {
    /// The id of this number, which the caller has drawn at random.
    pub const fn from_random(number: u128) -> ClusterId {
        ClusterId(number)
    }

    /// The number.
    pub const fn number(self) -> u128 {
        self.0
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for ClusterId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<ClusterId, InvalidId> {
        hex(text, 32)
            .and_then(|()| u128::from_str_radix(text, 16).ok())
            .map(ClusterId)
            .ok_or_else(|| InvalidId::new(text, 32))
    }
}

impl TryFrom<String> for ClusterId {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<ClusterId, InvalidId> {
        text.parse()
    }
}

impl From<ClusterId> for String {
    fn from(id: ClusterId) -> String {
        id.to_string()
    }
}

fn hex(text: &str, digits: usize) -> Option<()> {
    (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(())
}

/// A text that is no id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidId {
    text: String,
    digits: usize,
}

impl InvalidId {
    fn new(text: &str, digits: usize) -> InvalidId {
        InvalidId { text: text.to_owned(), digits }
    }
}

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not an id: it has {} hexadecimal digits", self.text, self.digits)
    }
}

impl std::error::Error for InvalidId {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_part_of_a_path_a_host_and_a_log_line() {
        for good in ["app-0", "a", "0", "db_1.example.org"] {
            assert_eq!(NodeName::new(good).unwrap().as_str(), good);
        }
        let long = "a".repeat(NAME_MAX_BYTES + 1);
        for bad in ["", "-a", ".", "a/b", "a b", "é", "a\n", long.as_str()] {
            assert!(NodeName::new(bad).unwrap_err().to_string().contains("letters"), "{bad:?}");
        }
    }

    #[test]
    fn ids_are_read_as_they_are_printed() {
        let node = NodeId::from_random(0xabc);
        assert_eq!(node.to_string().parse(), Ok(node));
        let cluster = ClusterId::from_random(7);
        assert_eq!(cluster.to_string().parse(), Ok(cluster));
        for bad in ["", "7", "+000000000000007", "000000000000000g"] {
            assert!(bad.parse::<NodeId>().is_err() && bad.parse::<ClusterId>().is_err(), "{bad}");
        }
    }
}
