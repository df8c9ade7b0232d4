//! Whom a connection trusts: certificates, a shared secret, or this machine alone.

use std::net::{IpAddr, SocketAddr};
#[cfg(feature = "tls")]
use std::path::PathBuf;

use tokio::net::TcpStream;

use super::error::DialCause;
use super::frame::{Fault, ReadHalf, WriteHalf};
use super::hello::Intended;
use super::secret::Secret;
#[cfg(feature = "tls")]
use super::tls::Certificates;
use crate::error::ClusterError;

/// What peers have to show to each other. All nodes and clients of a cluster use the same.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Security {
    /// TLS 1.3, with certificates of one authority on both sides.
    ///
    /// A listener accepts every certificate of the authority. A dialler requires one for the host that it dials, or for the name of the
    /// node that it wants. A node is both, so a certificate that lists its usages lists both. The files are PEM. They are looked at for every
    /// connection: renewed ones count from the next.
    #[cfg(feature = "tls")]
    Mutual {
        /// The certificates of the authority.
        ca: PathBuf,
        /// This side's certificate, with those between it and the authority.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// Both sides prove that they know this secret, and every frame carries a MAC. **Nothing is encrypted**: whoever is on the way can read
    /// along, but can neither change nor add anything.
    Secret(Secret),
    /// Neither. Peers on this machine are believed, and there are no others.
    LoopbackOnly,
}

/// What to do about [`Security::LoopbackOnly`].
const ADVICE: &str = "give certificates (--tls-ca, --tls-cert and --tls-key) or a secret (--secret-file), which a raft:// URL has as \
                      parameters of the same names";

impl Security {
    /// Whether it makes sense to listen there.
    ///
    /// # Errors
    /// When peers on other machines could connect, and could not be told from strangers.
    pub fn check_listen(&self, address: SocketAddr) -> Result<(), ClusterError> {
        match self {
            Security::LoopbackOnly if !is_loopback(address.ip()) => Err(ClusterError::invalid(format!(
                "without certificates or a secret, a node listens on loopback only, and {address} is not: {ADVICE}, or listen on 127.0.0.1"
            ))),
            _ => Ok(()),
        }
    }

    /// Whether it makes sense to tell others to connect to this `HOST:PORT`.
    ///
    /// # Errors
    /// When others would have to be on this machine, and the address says that they are not.
    pub fn check_advertised(&self, address: &str) -> Result<(), ClusterError> {
        let host = host_of(address);
        let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(is_loopback);
        match self {
            Security::LoopbackOnly if !is_here => Err(ClusterError::invalid(format!(
                "without certificates or a secret, a node is reached on loopback only, and {address} is not: {ADVICE}, or advertise 127.0.0.1"
            ))),
            _ => Ok(()),
        }
    }

    /// Reads what there is to read, so that mistakes show at the start.
    pub(super) fn prepare(self) -> Result<Protection, ClusterError> {
        match self {
            #[cfg(feature = "tls")]
            Security::Mutual { ca, certificate, key } => {
                Ok(Protection::Mutual(Box::new(Certificates::open(ca, certificate, key)?)))
            }
            Security::Secret(secret) => Ok(Protection::Secret(secret)),
            Security::LoopbackOnly => Ok(Protection::LoopbackOnly),
        }
    }
}

/// [`Security`], ready for use.
pub(super) enum Protection {
    #[cfg(feature = "tls")]
    Mutual(Box<Certificates>),
    Secret(Secret),
    LoopbackOnly,
}

/// Both halves of a connection, below the frames.
pub(super) type Halves = (ReadHalf, WriteHalf);

impl Protection {
    /// Whether a peer at this address can be trusted at all.
    pub(super) fn allows(&self, address: IpAddr) -> bool {
        match self {
            #[cfg(feature = "tls")]
            Protection::Mutual(_) => true,
            Protection::Secret(_) => true,
            Protection::LoopbackOnly => is_loopback(address),
        }
    }

    /// What both sides have to prove that they know.
    pub(super) fn secret(&self) -> Option<&Secret> {
        match self {
            Protection::Secret(secret) => Some(secret),
            _ => None,
        }
    }

    /// The listener's side.
    pub(super) async fn accept(&self, socket: TcpStream) -> Result<Halves, Fault> {
        match self {
            #[cfg(feature = "tls")]
            Protection::Mutual(certificates) => certificates.accept(socket).await,
            _ => Ok(plain(socket)),
        }
    }

    /// The dialler's side.
    pub(super) async fn connect(
        &self,
        socket: TcpStream,
        address: &str,
        intended: &Intended,
    ) -> Result<Halves, DialCause> {
        if !self.allows(socket.peer_addr().map_err(|error| DialCause::Unreachable(error.to_string()))?.ip()) {
            return Err(DialCause::Untrusted(format!(
                "without certificates or a secret, only loopback is trusted: {ADVICE}"
            )));
        }
        match self {
            #[cfg(feature = "tls")]
            Protection::Mutual(certificates) => {
                certificates.connect(socket, host_of(address), intended).await
            }
            _ => {
                let _ = (address, intended);
                Ok(plain(socket))
            }
        }
    }
}

fn plain(socket: TcpStream) -> Halves {
    let (read, write) = socket.into_split();
    (Box::new(read), Box::new(write))
}

/// `::ffff:127.0.0.1` too, which is how a socket for both protocols sees 127.0.0.1.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The host of `HOST:PORT`, without the brackets of an IPv6 address.
fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_certificates_or_a_secret_only_this_machine_is_trusted() {
        let loopback = Security::LoopbackOnly.prepare().unwrap();
        for (address, is_trusted) in [
            ("127.0.0.1", true),
            ("127.8.9.10", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("0.0.0.0", false),
            ("::", false),
        ] {
            assert_eq!(loopback.allows(address.parse().unwrap()), is_trusted, "{address}");
        }
        let secret = Security::Secret(Secret::new(&[7; 16]).unwrap()).prepare().unwrap();
        assert!(secret.allows("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn a_node_without_protection_neither_listens_nor_advertises_beyond_this_machine() {
        for far in ["0.0.0.0:7400", "10.0.0.1:7400", "[::]:7400"] {
            let error = Security::LoopbackOnly.check_listen(far.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains("--secret-file") && error.contains("--tls-ca"), "{error}");
        }
        for far in ["10.0.0.1:7400", "app-0.app:7400", "[2001:db8::1]:7400", "0.0.0.0:7400"] {
            let error = Security::LoopbackOnly.check_advertised(far).unwrap_err().to_string();
            assert!(error.contains("--secret-file"), "{error}");
        }
        for near in ["127.0.0.1:7400", "localhost:7400", "[::1]:7400"] {
            Security::LoopbackOnly.check_advertised(near).unwrap();
        }
        let secret = Security::Secret(Secret::new(&[7; 16]).unwrap());
        secret.check_listen("0.0.0.0:7400".parse().unwrap()).unwrap();
        secret.check_advertised("app-0.app:7400").unwrap();
    }
}
