//! Where to listen. Without a host, on loopback: nobody serves a network by accident.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::AgentError;

/// Where to listen: a host and a port, or a Unix socket.
///
/// ```
/// use bellwether_agent::Address;
///
/// assert_eq!(Address::parse(":8080").unwrap().to_string(), "127.0.0.1:8080");
/// assert_eq!(Address::parse("unix:/run/demo.sock").unwrap().to_string(), "unix:/run/demo.sock");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(pub(crate) Place);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

const LOOPBACK: &str = "127.0.0.1";

impl Address {
    /// Parses `HOST:PORT`, `:PORT` or `PORT` (on loopback), or `unix:PATH`.
    ///
    /// # Errors
    /// With a sentence that says what to write.
    pub fn parse(text: &str) -> Result<Address, AgentError> {
        let bad =
            |sentence: &str| Err(AgentError::new(format!("{text:?} is no address to listen on: {sentence}")));
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => bad("write the path of the socket after `unix:`"),
                path => Ok(Address(Place::Unix(PathBuf::from(path)))),
            };
        }
        for scheme in ["http://", "https://"] {
            if text.starts_with(scheme) {
                return bad(&format!("leave `{scheme}` out; --http-tls-cert makes it HTTPS"));
            }
        }
        if text.contains('/') {
            return bad("write `unix:` before the path of a socket");
        }
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let host = match host {
            "" => LOOPBACK,
            host => match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host) {
                // Between brackets there is a colon, and only there.
                inside if inside.contains(':') == (inside != host) && !inside.contains(['[', ']']) => inside,
                _ => return bad("an IPv6 address is written in brackets: [::1]:8080"),
            },
        };
        // Not by `u16` alone, which takes `+80`.
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return bad("write HOST:PORT, :PORT for loopback, or unix:PATH");
        }
        match port.parse() {
            Ok(port) => Ok(Address(Place::Tcp { host: host.to_owned(), port })),
            Err(_) => bad("a port is at most 65535"),
        }
    }

    /// The path, if it is a Unix socket.
    pub fn unix_path(&self) -> Option<&Path> {
        match &self.0 {
            Place::Unix(path) => Some(path),
            Place::Tcp { .. } => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Place::Tcp { host, port } => write!(f, "{host}:{port}"),
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_host_is_loopback() {
        for (text, meant) in [
            ("8080", "127.0.0.1:8080"),
            (":0", "127.0.0.1:0"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("[::1]:80", "[::1]:80"),
            ("localhost:80", "localhost:80"),
            ("unix:a.sock", "unix:a.sock"),
        ] {
            assert_eq!(Address::parse(text).unwrap().to_string(), meant);
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_to_write() {
        for (text, advice) in [
            ("", "HOST:PORT"),
            ("localhost", "HOST:PORT"),
            ("localhost:http", "HOST:PORT"),
            (":65536", "65535"),
            ("::1:80", "brackets"),
            ("[]:80", "brackets"),
            ("[localhost]:80", "brackets"),
            ("[[::1]]:80", "brackets"),
            ("localhost:+80", "HOST:PORT"),
            ("http://localhost:80", "leave"),
            ("/run/a.sock", "unix:"),
            ("unix:", "path"),
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(advice), "{text}: {error}");
        }
    }
}
