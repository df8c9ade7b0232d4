//! From `HOST:PORT` to a connection to the right node.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::connection::Connection;
use super::error::{DialCause, DialError};
use super::frame::{FrameReader, FrameWriter};
use super::handshake;
use super::hello::Hello;
use super::limits::{ADDRESSES_MAX, Limits};
use super::lookup::{HostLookup, SystemLookup};
use super::security::{Protection, Security};
use crate::error::ClusterError;

/// Makes connections. Clones share the certificates.
#[derive(Clone)]
pub struct Dialler {
    protection: Arc<Protection>,
    lookup: Arc<dyn HostLookup>,
    limits: Limits,
}

impl Dialler {
    /// Connections that are protected like this.
    ///
    /// # Errors
    /// When certificates cannot be read.
    pub fn new(security: Security) -> Result<Dialler, ClusterError> {
        Ok(Dialler {
            protection: Arc::new(security.prepare()?),
            lookup: Arc::new(SystemLookup),
            limits: Limits::default(),
        })
    }

    /// Finds addresses like this, and not through the operating system.
    #[must_use]
    pub fn with_lookup(self, lookup: Arc<dyn HostLookup>) -> Dialler {
        Dialler { lookup, ..self }
    }

    /// Keeps to these bounds.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Dialler {
        Dialler { limits, ..self }
    }

    /// Connects to the node that the hello means. Looks the host up, and tries its addresses one after the other until one leads there.
    ///
    /// # Errors
    /// When none does. If a listener refused, the error is its refusal: it says more than an address where nobody listens.
    pub async fn connect(&self, address: &str, hello: &Hello) -> Result<Connection, DialError> {
        let dialled = match timeout(self.limits.dial, self.try_addresses(address, hello)).await {
            Ok(dialled) => dialled,
            Err(_) => Err(DialCause::TimedOut(self.limits.dial)),
        };
        dialled.map_err(|cause| DialError { address: address.to_owned(), cause })
    }

    async fn try_addresses(&self, address: &str, hello: &Hello) -> Result<Connection, DialCause> {
        let found = self.lookup.look_up(address).await;
        let found = found.map_err(|error| DialCause::Unresolved(error.to_string()))?;
        let mut failure = DialCause::Unresolved("it has no address".to_owned());
        for one in found.into_iter().take(ADDRESSES_MAX) {
            match self.connect_to(one, address, hello).await {
                Ok(connection) => return Ok(connection),
                Err(_) if matches!(failure, DialCause::Refused(_)) => {}
                Err(cause) => failure = cause,
            }
        }
        Err(failure)
    }

    async fn connect_to(
        &self,
        to: SocketAddr,
        address: &str,
        hello: &Hello,
    ) -> Result<Connection, DialCause> {
        // A name has addresses of its own to tell; an address was told already.
        let is_told = address.parse() == Ok(to);
        let unreachable = |error: std::io::Error| {
            DialCause::Unreachable(if is_told { error.to_string() } else { format!("{to}: {error}") })
        };
        let socket = match timeout(self.limits.connect, TcpStream::connect(to)).await {
            Err(_) => return Err(DialCause::TimedOut(self.limits.connect)),
            Ok(connected) => connected.map_err(unreachable)?,
        };
        socket.set_nodelay(true).map_err(unreachable)?;
        let shake = async {
            let (read, write) = self.protection.connect(socket, address, &hello.intended).await?;
            let mut reader = FrameReader::new(read, &self.limits);
            let mut writer = FrameWriter::new(write, &self.limits);
            let welcome = handshake::dial(&mut reader, &mut writer, hello, self.protection.secret()).await?;
            Ok(Connection::start(reader, writer, welcome, to, self.limits.ping))
        };
        match timeout(self.limits.handshake, shake).await {
            Err(_) => Err(DialCause::TimedOut(self.limits.handshake)),
            Ok(done) => done,
        }
    }
}
