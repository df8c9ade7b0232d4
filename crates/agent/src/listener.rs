//! Listening, before anything is served: mistakes in an address are reported before the candidate competes.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use crate::address::{Address, Place};
use crate::tls::Certificates;
use crate::unix_socket::{self, SocketFile};
use crate::{AgentError, TlsFiles, Token};

/// A socket that listens, and answers nobody yet.
pub struct Listener {
    pub(crate) socket: Socket,
    pub(crate) token: Option<Token>,
    pub(crate) certificates: Option<Certificates>,
    shown: String,
}

pub(crate) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

impl Listener {
    /// Listens. Without a token nothing can be changed; with files for TLS, connections are encrypted.
    ///
    /// # Errors
    /// When the address cannot be had, or the files cannot be used.
    pub fn bind(
        address: &Address,
        token: Option<Token>,
        tls: Option<TlsFiles>,
    ) -> Result<Listener, AgentError> {
        let certificates = tls.map(Certificates::open).transpose()?;
        let scheme = if certificates.is_some() { "https" } else { "http" };
        let failed = |error: std::io::Error| {
            AgentError::new(format!("cannot listen on {address} for --http: {error}"))
        };
        let (socket, shown) = match &address.0 {
            Place::Tcp { host, port } => {
                let listener = TcpListener::bind((host.as_str(), *port)).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let bound = listener.local_addr().map_err(failed)?;
                if !bound.ip().to_canonical().is_loopback() {
                    warn_of_network(token.is_some(), certificates.is_some(), &bound.to_string());
                }
                (Socket::Tcp(listener), format!("{scheme}://{bound}"))
            }
            Place::Unix(path) => {
                let (listener, file) = unix_socket::bind(path)?;
                listener.set_nonblocking(true).map_err(failed)?;
                (Socket::Unix(listener, file), address.to_string())
            }
        };
        Ok(Listener { socket, token, certificates, shown })
    }

    /// Where it listens, as people write it: `http://127.0.0.1:8080`, `unix:/run/demo.sock`.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

/// Says what an address that is not loopback means.
fn warn_of_network(has_token: bool, is_encrypted: bool, address: &str) {
    if !has_token {
        tracing::warn!(
            "--http {address} is no loopback address: everybody who reaches it may read status, history, events and metrics \
             (nothing can be changed without --http-token-file)"
        );
    } else if !is_encrypted {
        tracing::warn!(
            "--http {address} is no loopback address and not encrypted: the token can be read on its way (--http-tls-cert, \
             --http-tls-key)"
        );
    }
}
