//! `raft://HOST:PORT[,HOST:PORT]…?…`: where the nodes of a cluster are, and how a client proves itself to them.
//!
//! ```text
//! raft://10.0.0.1:7117,10.0.0.2:7117,10.0.0.3:7117?secret-file=/etc/bellwether/secret
//! raft://app-0.app,app-1.app?tls-ca=ca.pem&tls-cert=me.pem&tls-key=me.key
//! ```
//!
//! Secrets are in files that the URL names, and never in the URL. Values may be percent-encoded. With `discover=no` a client asks no other nodes
//! than these, even if they name the leader.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::ClusterError;
use crate::resolver::address;
use crate::transport::{Secret, Security};

/// The port of nodes that are named without one.
pub const DEFAULT_PORT: u16 = 7117;

const SCHEME: &str = "raft://";
const SECRET: &str = "secret-file";
const DISCOVER: &str = "discover";
const TLS: [&str; 3] = ["tls-ca", "tls-cert", "tls-key"];

/// What a client needs to reach a cluster.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// `HOST:PORT` of some of its nodes: any of them finds the leader.
    pub addresses: Vec<String>,
    /// What client and nodes show to each other.
    pub security: Security,
    /// Whether the leader is asked at the address that another node names, and not only the nodes of the URL.
    pub discovers: bool,
}

impl ClientConfig {
    /// Reads a URL, and the secret in the file that it names.
    ///
    /// # Errors
    /// When the URL is none of a cluster, or the file cannot be used; the sentence says what to write.
    pub fn from_url(url: &str) -> Result<ClientConfig, ClusterError> {
        let rest = url.strip_prefix(SCHEME).ok_or_else(|| {
            ClusterError::invalid("a cluster is named by its nodes: write raft://HOST:PORT[,HOST:PORT]…")
        })?;
        let (hosts, query) = rest.split_once('?').unwrap_or((rest, ""));
        let hosts = hosts.strip_suffix('/').unwrap_or(hosts);
        if hosts.contains('@') {
            return Err(ClusterError::invalid(
                "a raft:// URL has no user and no password: name a file with ?secret-file=FILE",
            ));
        }
        let addresses = hosts.split(',').map(|host| node_address(host.trim())).collect::<Result<_, _>>()?;
        let mut options = options(query)?;
        let discovers = match options.remove(DISCOVER).as_deref() {
            None | Some("yes") => true,
            Some("no") => false,
            Some(_) => return Err(ClusterError::invalid("discover in the raft:// URL is yes or no")),
        };
        Ok(ClientConfig { addresses, security: security(options)?, discovers })
    }
}

/// `HOST:PORT`, with the usual port where there is none.
pub(crate) fn node_address(host: &str) -> Result<String, ClusterError> {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    let address = if has_port { host.to_owned() } else { format!("{host}:{DEFAULT_PORT}") };
    match address::wrong(&address) {
        _ if host.is_empty() => {
            Err(ClusterError::invalid("a node is missing: write raft://HOST:PORT[,HOST:PORT]…"))
        }
        Some(why) => Err(ClusterError::invalid(format!("the raft:// URL cannot be read: {why}"))),
        None => Ok(address),
    }
}

pub(crate) fn options(query: &str) -> Result<BTreeMap<&str, String>, ClusterError> {
    let mut options = BTreeMap::new();
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        if name != SECRET && name != DISCOVER && !TLS.contains(&name) {
            let known = [&[SECRET], &TLS[..], &[DISCOVER]].concat().join(", ");
            return Err(ClusterError::invalid(format!(
                "a raft:// URL has no parameter {name:?}: there are {known}"
            )));
        }
        let value = unescape(value).filter(|value| !value.is_empty()).ok_or_else(|| {
            ClusterError::invalid(format!(
                "{name} in the raft:// URL is not a file: write its path, with %25 for a percent sign"
            ))
        })?;
        if options.insert(name, value).is_some() {
            return Err(ClusterError::invalid(format!("{name} is twice in the raft:// URL: leave one out")));
        }
    }
    Ok(options)
}

fn security(mut options: BTreeMap<&str, String>) -> Result<Security, ClusterError> {
    let secret = options.remove(SECRET).map(PathBuf::from);
    let [ca, certificate, key] = TLS.map(|name| options.remove(name).map(PathBuf::from));
    Security::from_files(secret, ca, certificate, key)
}

impl Security {
    /// What these files say: a secret, or all three of certificates; loopback alone without any.
    ///
    /// # Errors
    /// When both are given, or only a part of the second, and when the secret cannot be used.
    pub fn from_files(
        secret: Option<PathBuf>,
        ca: Option<PathBuf>,
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
    ) -> Result<Security, ClusterError> {
        match (secret, ca, certificate, key) {
            (None, None, None, None) => Ok(Security::LoopbackOnly),
            (Some(file), None, None, None) => Ok(Security::Secret(Secret::from_file(&file)?)),
            #[cfg(feature = "tls")]
            (None, Some(ca), Some(certificate), Some(key)) => Ok(Security::Mutual { ca, certificate, key }),
            #[cfg(not(feature = "tls"))]
            (None, Some(_), Some(_), Some(_)) => Err(ClusterError::invalid(
                "this build has no TLS: use a secret (secret-file), or build with the feature tls",
            )),
            (Some(_), _, _, _) => Err(ClusterError::invalid(
                "secret-file and tls-ca, tls-cert, tls-key exclude each other: nodes and clients of a cluster all use the same of the two",
            )),
            (None, ..) => {
                Err(ClusterError::invalid("tls-ca, tls-cert and tls-key go together: give all three"))
            }
        }
    }
}

/// Text without its percent-encoding.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(&digits).ok().filter(|_| is_hex)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_the_usual_port_unless_the_url_says_another() {
        for (url, addresses) in [
            ("raft://a:1,b", vec!["a:1", "b:7117"]),
            ("raft://10.0.0.1/", vec!["10.0.0.1:7117"]),
            ("raft://[::1],[fd00::1]:9, c:3", vec!["[::1]:7117", "[fd00::1]:9", "c:3"]),
        ] {
            let config = ClientConfig::from_url(url).unwrap();
            assert_eq!(config.addresses, addresses, "{url}");
            assert!(matches!(config.security, Security::LoopbackOnly));
        }
    }

    #[test]
    fn a_secret_is_read_from_the_file_that_the_url_names() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("the secret%");
        std::fs::write(&file, "0123456789abcdef\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, mode).unwrap();
        let escaped = file.display().to_string().replace('%', "%25").replace(' ', "%20");
        let config = ClientConfig::from_url(&format!("raft://a?secret-file={escaped}")).unwrap();
        assert!(matches!(config.security, Security::Secret(_)));
    }

    #[cfg(feature = "tls")]
    #[test]
    fn certificates_are_three_files() {
        let config = ClientConfig::from_url("raft://a?tls-ca=/c&tls-cert=/m&tls-key=/k").unwrap();
        let Security::Mutual { ca, certificate, key } = config.security else { panic!("no certificates") };
        assert_eq!([ca, certificate, key], ["/c", "/m", "/k"].map(PathBuf::from));
    }

    #[test]
    fn mistakes_are_answered_with_what_to_write() {
        for (url, part) in [
            ("file:/x", "write raft://HOST:PORT"),
            ("raft:", "write raft://HOST:PORT"),
            ("raft://", "a node is missing"),
            ("raft://a:1,", "a node is missing"),
            ("raft://a:http", "from 1 to 65535"),
            ("raft://::1", "in brackets"),
            ("raft://me:s3cret@a", "no user and no password"),
            ("raft://a?secret=x", "there are secret-file, tls-ca"),
            ("raft://a?secret-file", "secret-file in the raft:// URL is not a file"),
            ("raft://a?secret-file=%zz", "secret-file in the raft:// URL is not a file"),
            ("raft://a?secret-file=/nowhere/at-all", "cannot read the secret in /nowhere/at-all"),
            ("raft://a?tls-ca=/c", "give all three"),
            ("raft://a?tls-ca=/c&tls-ca=/c", "twice"),
            ("raft://a?secret-file=/s&tls-ca=/c", "exclude each other"),
            ("raft://a?discover=maybe", "yes or no"),
        ] {
            let error = ClientConfig::from_url(url).unwrap_err().to_string();
            assert!(error.contains(part), "{url}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
