//! Accepts connections, and ends them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::frame::{Fault, FrameReader, FrameWriter};
use super::handshake::{self, Turned};
use super::hello::{Hello, Purpose, Refused, Welcome};
use super::host::Host;
use super::limits::{Limits, REFUSED_AT_ONCE_MAX};
use super::security::{Protection, Security};
use super::serving;
use crate::error::ClusterError;

/// After an error of `accept`, which comes again at once while the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An open port. Dropped, it closes with all its connections.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    /// Dropped, it tells the task to close everything.
    closing: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Listener {
    /// Listens on `HOST:PORT`, with the usual bounds.
    ///
    /// # Errors
    /// When the address is taken or not of this machine, when certificates cannot be read, and when the security does not allow it.
    pub async fn bind(
        address: &str,
        security: Security,
        host: Arc<dyn Host>,
    ) -> Result<Listener, ClusterError> {
        Listener::bind_with(address, security, host, Limits::default()).await
    }

    /// Listens on `HOST:PORT`, with these bounds.
    ///
    /// # Errors
    /// As [`bind`](Listener::bind).
    pub async fn bind_with(
        address: &str,
        security: Security,
        host: Arc<dyn Host>,
        limits: Limits,
    ) -> Result<Listener, ClusterError> {
        let failed = |error: io::Error| ClusterError::invalid(format!("cannot listen on {address}: {error}"));
        let found: Vec<SocketAddr> = tokio::net::lookup_host(address).await.map_err(failed)?.collect();
        for one in &found {
            security.check_listen(*one)?;
        }
        let protection = security.prepare()?;
        let socket = TcpListener::bind(&found[..]).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let gate = Arc::new(Gate {
            protection,
            host,
            limits,
            connections: Arc::new(Semaphore::new(limits.connections)),
            clients: Arc::new(Semaphore::new(limits.client_connections)),
            refusals: Arc::new(Semaphore::new(REFUSED_AT_ONCE_MAX)),
        });
        let (closing, closed) = watch::channel(());
        Ok(Listener { address, closing, task: tokio::spawn(accept(socket, gate, closed)) })
    }

    /// Where it listens. Tells the port if 0 was asked for.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port and all connections. Nothing of the host runs for them when this returns.
    pub async fn shutdown(self) {
        drop(self.closing);
        // It fails only if the task panicked, and then there is nothing left to close.
        let _ = self.task.await;
    }
}

/// What every connection passes.
struct Gate {
    protection: Protection,
    host: Arc<dyn Host>,
    limits: Limits,
    connections: Arc<Semaphore>,
    clients: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
}

async fn accept(socket: TcpListener, gate: Arc<Gate>, closed: watch::Receiver<()>) {
    let mut connections = JoinSet::new();
    let mut closing = closed.clone();
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            _ = closing.changed() => break,
        };
        match accepted {
            Ok((connection, peer)) => {
                if let Some(slot) = gate.slot(peer) {
                    let (gate, closed) = (Arc::clone(&gate), closed.clone());
                    connections.spawn(async move { gate.run(connection, peer, slot, closed).await });
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                sleep(ACCEPT_PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    drop(socket);
    while connections.join_next().await.is_some() {}
}

/// The place of a connection. It is given back when the connection ends.
enum Slot {
    Serve(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit),
    /// There is none; the dialler is told so.
    Refuse(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit),
}

impl Gate {
    fn slot(&self, peer: SocketAddr) -> Option<Slot> {
        if !self.protection.allows(peer.ip()) {
            tracing::warn!(%peer, "connection closed: without certificates or a secret, only loopback is trusted");
            return None;
        }
        let free = |slots: &Arc<Semaphore>| Arc::clone(slots).try_acquire_owned().ok();
        free(&self.connections).map(Slot::Serve).or_else(|| free(&self.refusals).map(Slot::Refuse))
    }

    async fn run(
        &self,
        connection: TcpStream,
        peer: SocketAddr,
        slot: Slot,
        mut closed: watch::Receiver<()>,
    ) {
        let admitted = tokio::select! {
            admitted = timeout(self.limits.handshake, self.admit(connection, &slot)) => admitted,
            _ = closed.changed() => return,
        };
        let turned = match admitted {
            Err(_) => Turned::Fault(Fault::Silent(self.limits.handshake)),
            Ok(Err(turned)) => turned,
            Ok(Ok((reader, writer, hello, _client))) => {
                tracing::debug!(%peer, purpose = ?hello.purpose, from = ?hello.from, "connection open");
                let host = Arc::clone(&self.host);
                Turned::Fault(serving::serve(reader, writer, hello, host, self.limits.ping, closed).await)
            }
        };
        match turned {
            Turned::Away(reason) => tracing::warn!(%peer, %reason, "connection refused"),
            Turned::Fault(error) if error.is_suspicious() => {
                tracing::warn!(%peer, %error, "connection closed")
            }
            Turned::Fault(error) => tracing::debug!(%peer, %error, "connection closed"),
        }
    }

    /// The handshake. Returns with the place among the clients that the dialler takes, if it is one.
    async fn admit(
        &self,
        connection: TcpStream,
        slot: &Slot,
    ) -> Result<(FrameReader, FrameWriter, Hello, Option<OwnedSemaphorePermit>), Turned> {
        connection.set_nodelay(true).map_err(Fault::from)?;
        let (read, write) = self.protection.accept(connection).await?;
        let mut reader = FrameReader::new(read, &self.limits);
        let mut writer = FrameWriter::new(write, &self.limits);
        let mut client = None;
        let greet = |hello: &Hello| -> Result<Welcome, Refused> {
            if matches!(slot, Slot::Refuse(_)) {
                return Err(Refused::TooManyConnections);
            }
            // A node that passes requests on takes one connection for all of them, and none of the clients' places.
            if hello.purpose == Purpose::Client && hello.from.is_none() {
                let place = Arc::clone(&self.clients).try_acquire_owned();
                client = Some(place.map_err(|_| Refused::TooManyConnections)?);
            }
            self.host.greet(hello)
        };
        let hello = handshake::accept(&mut reader, &mut writer, self.protection.secret(), greet).await?;
        Ok((reader, writer, hello, client))
    }
}
