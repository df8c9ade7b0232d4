//! What two sides tell each other before anything else: who speaks, to whom, in which cluster, and what for.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::frame::{Fault, decode, encode};
use super::secret::Nonce;
use crate::adapter::Lane;
use crate::names::{ClusterId, NodeId, NodeName};

/// The version of frames and hello. Any difference is refused: nothing is known about what the other side means.
pub(super) const VERSION: u16 = 1;

/// The first bytes of every hello. They tell a peer of another version from one that speaks another protocol.
const MAGIC: [u8; 4] = *b"BLWR";

/// The first thing that a dialler says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// What the connection is for.
    pub purpose: Purpose,
    /// The cluster that the dialler belongs to or wants. `None` in formation, where messages name clusters themselves, and of a client
    /// that takes any.
    pub cluster: Option<ClusterId>,
    /// The node that dials; `None` for clients and operators.
    pub from: Option<(NodeId, NodeName)>,
    /// Who has to answer.
    pub intended: Intended,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Purpose {
    /// Invitations, consents, and questions about which cluster there is.
    Formation,
    /// Messages between Raft engines.
    Raft(Lane),
    /// An operator's commands.
    Admin,
    /// A client of the cluster.
    Client,
}

/// Who has to answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Intended {
    /// This member. Its certificate may be for the name instead of the host.
    Node(NodeId, NodeName),
    /// Any node of this name: its id is not known yet.
    Name(NodeName),
    /// Whoever is there.
    Anyone,
}

/// What a listener answers to those whom it lets in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The node that answers.
    pub node: NodeId,
    /// Its name.
    pub name: NodeName,
    /// The cluster that it belongs to.
    pub cluster: Option<ClusterId>,
}

/// Why a listener does not let a dialler in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Refused {
    /// The two speak different versions. Every version can read this variant: it is the first, and its fields never change.
    WrongVersion {
        /// What the listener speaks.
        listener: u16,
        /// What the dialler speaks.
        dialler: u16,
    },
    /// The two belong to different clusters.
    WrongCluster {
        /// The listener's.
        listener: ClusterId,
        /// The dialler's.
        dialler: ClusterId,
    },
    /// The intended node is not at this address.
    AnotherNode {
        /// The node that is.
        node: NodeId,
        /// Its name.
        name: NodeName,
    },
    /// The dialler did not prove that it knows the secret, or offered a proof to a node without one.
    NotAuthenticated,
    /// The node has not consented to the dialler's cluster.
    NoConsent,
    /// The node shuts down.
    ShuttingDown,
    /// The node has as many connections as it takes.
    TooManyConnections,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::WrongVersion { listener, dialler } => write!(
                f,
                "the node speaks version {listener} of the protocol and this side version {dialler}: upgrade the older one"
            ),
            Refused::WrongCluster { listener, dialler } => write!(
                f,
                "the node belongs to cluster {listener}, not to {dialler}: check the address, or remove the data that names the wrong cluster"
            ),
            Refused::AnotherNode { node, name } => {
                write!(f, "node {node} ({name}) is at this address, not the intended one: check the address or its DNS entry")
            }
            Refused::NotAuthenticated => {
                f.write_str("the node and this side do not share a secret: give both the same secret file, or neither any")
            }
            Refused::NoConsent => f.write_str("the node has not consented to this cluster: invite it first"),
            Refused::ShuttingDown => f.write_str("the node is shutting down: try another one"),
            Refused::TooManyConnections => f.write_str("the node has too many connections: try again later, or try another one"),
        }
    }
}

impl std::error::Error for Refused {}

impl Refused {
    /// Whether a listener says this before it knows who asks. Anybody on the way could have said it too; any other reason counts only
    /// from a listener that has proven itself.
    pub(super) fn precedes_proof(&self) -> bool {
        matches!(self, Refused::WrongVersion { .. } | Refused::NotAuthenticated)
    }
}

impl Hello {
    /// Whether this hello and that welcome go together. Both sides ask: a host cannot forget to, and a dialler need not believe it.
    ///
    /// # Errors
    /// When they name different clusters, or another node than the intended one answers.
    pub fn check(&self, welcome: &Welcome) -> Result<(), Refused> {
        let is_intended = match &self.intended {
            Intended::Node(node, _) => *node == welcome.node,
            Intended::Name(name) => *name == welcome.name,
            Intended::Anyone => true,
        };
        if !is_intended {
            return Err(Refused::AnotherNode { node: welcome.node, name: welcome.name.clone() });
        }
        match (welcome.cluster, self.cluster) {
            (Some(listener), Some(dialler)) if listener != dialler => {
                Err(Refused::WrongCluster { listener, dialler })
            }
            _ => Ok(()),
        }
    }
}

/// The body of a hello: magic and version as they are in every version, then the rest as postcard has it.
pub(super) fn encode_hello(hello: &Hello, nonce: Option<Nonce>) -> Vec<u8> {
    let mut body = MAGIC.to_vec();
    body.extend_from_slice(&VERSION.to_be_bytes());
    body.extend_from_slice(&encode(&(nonce, hello)));
    body
}

/// What was heard in place of a hello.
#[derive(Debug)]
pub(super) enum Unheard {
    /// A hello of this other version.
    Version(u16),
    /// Something else.
    Fault(Fault),
}

/// The reverse of [`encode_hello`].
pub(super) fn decode_hello(body: &[u8]) -> Result<(Option<Nonce>, Hello), Unheard> {
    let (Some(magic), Some(version)) = (body.get(..4), body.get(4..6)) else {
        return Err(Unheard::Fault(Fault::Malformed("the hello is too short")));
    };
    if magic != MAGIC {
        return Err(Unheard::Fault(Fault::Malformed("the hello is of another protocol")));
    }
    let version = u16::from_be_bytes([version[0], version[1]]);
    if version != VERSION {
        return Err(Unheard::Version(version));
    }
    decode(&body[6..], "the hello cannot be read").map_err(Unheard::Fault)
}
