//! How the server is reached: a socket of ours, or whatever the user's own function connects.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::StoreError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_postgres::config::Host;

use crate::Config;
use crate::errors::{misconfigured, unavailable};

#[cfg(unix)]
use std::os::fd::{AsFd, OwnedFd};

/// A duplicate of a connection's socket, for a guard that is to close it last. Elsewhere there are none.
#[cfg(unix)]
pub(crate) type SocketDuplicate = OwnedFd;
#[cfg(not(unix))]
pub(crate) type SocketDuplicate = std::convert::Infallible;

trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

/// Reads and writes through the first field.
macro_rules! passes_bytes {
    ($type:ty) => {
        impl tokio::io::AsyncRead for $type {
            fn poll_read(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                buffer: &mut tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.0).poll_read(context, buffer)
            }
        }

        impl tokio::io::AsyncWrite for $type {
            fn poll_write(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                bytes: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                std::pin::Pin::new(&mut self.0).poll_write(context, bytes)
            }

            fn poll_flush(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.0).poll_flush(context)
            }

            fn poll_shutdown(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.0).poll_shutdown(context)
            }
        }
    };
}
#[cfg(feature = "tls")]
pub(crate) use passes_bytes;

/// The bytes of a connection, whatever carries them.
pub(crate) struct Socket(Box<dyn ByteStream>);

passes_bytes!(Socket);

/// A connection to the server, as [`Config::connect_with`] takes it: bytes in and out, on which nothing has been said yet.
pub struct Transport {
    pub(crate) stream: Socket,
    /// The port at this end, where it is a connection by TCP.
    pub(crate) port: Option<u16>,
    pub(crate) duplicate: Option<SocketDuplicate>,
}

impl Transport {
    /// Any stream. The guard of `bellwether run` cannot keep such a connection open until the work of a killed process has
    /// ended, as it does with sockets; see [`Transport::with_duplicate`].
    pub fn new(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Transport {
        Transport { stream: Socket(Box::new(stream)), port: None, duplicate: None }
    }

    /// With a duplicate of the socket underneath: the server sees the end of the connection only when this is closed too.
    #[cfg(unix)]
    #[must_use]
    pub fn with_duplicate(self, socket: OwnedFd) -> Transport {
        Transport { duplicate: Some(socket), ..self }
    }
}

impl From<TcpStream> for Transport {
    fn from(stream: TcpStream) -> Transport {
        #[cfg(unix)]
        let duplicate = stream.as_fd().try_clone_to_owned().ok();
        #[cfg(not(unix))]
        let duplicate = None;
        let port = stream.local_addr().ok().map(|address| address.port());
        Transport { stream: Socket(Box::new(stream)), port, duplicate }
    }
}

#[cfg(unix)]
impl From<tokio::net::UnixStream> for Transport {
    fn from(stream: tokio::net::UnixStream) -> Transport {
        let duplicate = stream.as_fd().try_clone_to_owned().ok();
        Transport { stream: Socket(Box::new(stream)), port: None, duplicate }
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

/// What the user's own function returns.
pub(crate) type Connecting = Pin<Box<dyn Future<Output = io::Result<Transport>> + Send>>;

/// The user's own way to the server at a place: a host, or a directory of sockets, and a port.
#[derive(Clone)]
pub(crate) struct ConnectWith(pub(crate) Arc<dyn Fn(String, u16) -> Connecting + Send + Sync>);

impl fmt::Debug for ConnectWith {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectWith")
    }
}

/// Connects to the server at this place of the list.
pub(crate) async fn reach(config: &Config, host: usize) -> Result<Transport, StoreError> {
    let failed =
        |error: io::Error| unavailable(format!("{} cannot be reached", place(config, host))).caused_by(error);
    let port = port(config, host);
    if let Some(ConnectWith(connect)) = &config.connect_with {
        return connect(name(config, host), port).await.map_err(failed);
    }
    match config.server.get_hosts().get(host) {
        Some(Host::Tcp(name)) => {
            let stream = match config.server.get_hostaddrs().get(host) {
                Some(address) => TcpStream::connect((*address, port)).await,
                None => TcpStream::connect((name.as_str(), port)).await,
            };
            let stream = stream.map_err(failed)?;
            stream.set_nodelay(true).map_err(failed)?;
            let keepalive = socket2::TcpKeepalive::new().with_time(Duration::from_secs(30));
            socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive).map_err(failed)?;
            Ok(Transport::from(stream))
        }
        #[cfg(unix)]
        Some(Host::Unix(directory)) => {
            let path = directory.join(format!(".s.PGSQL.{port}"));
            Ok(Transport::from(tokio::net::UnixStream::connect(path).await.map_err(failed)?))
        }
        None => Err(misconfigured("no host is named")),
    }
}

pub(crate) fn port(config: &Config, host: usize) -> u16 {
    let ports = config.server.get_ports();
    ports.get(host).or_else(|| ports.first()).copied().unwrap_or(5432)
}

/// The host as it is written in the URL.
pub(crate) fn name(config: &Config, host: usize) -> String {
    match config.server.get_hosts().get(host) {
        Some(Host::Tcp(name)) => name.clone(),
        #[cfg(unix)]
        Some(Host::Unix(directory)) => directory.display().to_string(),
        None => "nowhere".to_owned(),
    }
}

/// Whether it is a socket of this machine, which is never encrypted.
pub(crate) fn is_local(config: &Config, host: usize) -> bool {
    !matches!(config.server.get_hosts().get(host), Some(Host::Tcp(_)))
}

/// Without user or password, so that it can be printed.
pub(crate) fn place(config: &Config, host: usize) -> String {
    format!("{}:{}", name(config, host), port(config, host))
}
