//! Accepting connections, as many as there is room for, and serving each in a task of its own.
//!
//! One too many gets an answer that says so, and is closed: to leave it waiting would keep load balancers waiting too.

use std::io;
use std::sync::Arc;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;

use crate::limits::{ACCEPT_PAUSE, BUFFER_MAX_BYTES, HANDSHAKE_TIMEOUT, HEAD_TIMEOUT, WRITE_TIMEOUT};
use crate::listener::Socket;
use crate::patient::{Io, Patient};
use crate::peer::Peer;
use crate::tls::Certificates;
use crate::unix_socket::SocketFile;

/// What a connection beyond the bound is told.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
    content-type: application/json\r\ncontent-length: 43\r\n\r\n{\"error\":\"too many connections; try later\"}";

enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener, #[expect(dead_code, reason = "its end removes the socket's file")] SocketFile),
}

enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Accepts until it is dropped.
pub(crate) async fn accept(
    socket: Socket,
    certificates: Option<Certificates>,
    router: Router,
    connections_max: usize,
) -> io::Result<()> {
    let listening = match socket {
        Socket::Tcp(listener) => Listening::Tcp(TcpListener::from_std(listener)?),
        Socket::Unix(listener, file) => Listening::Unix(UnixListener::from_std(listener)?, file),
    };
    let certificates = certificates.map(Arc::new);
    let room = Arc::new(Semaphore::new(connections_max));
    let mut warned = false;
    loop {
        let accepted = match listening.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // A client that was gone before it was accepted, or no descriptor left: neither is worth more than a line.
                if !std::mem::replace(&mut warned, true) {
                    tracing::warn!(%error, "--http cannot accept a connection; trying again");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
            accepted.refuse(certificates.is_some());
            continue;
        };
        let (router, certificates) = (router.clone(), certificates.clone());
        tokio::spawn(async move {
            let _place = place;
            let peer = accepted.peer();
            if let Some(stream) = opened(accepted, certificates.as_deref()).await {
                serve(stream, peer, router).await;
            }
        });
    }
}

impl Listening {
    async fn accept(&self) -> io::Result<Accepted> {
        Ok(match self {
            Listening::Tcp(listener) => Accepted::Tcp(listener.accept().await?.0),
            Listening::Unix(listener, _) => Accepted::Unix(listener.accept().await?.0),
        })
    }
}

impl Accepted {
    fn peer(&self) -> Peer {
        match self {
            Accepted::Tcp(_) => Peer::Network,
            Accepted::Unix(stream) => Peer::of(stream),
        }
    }

    /// Says that there is no room, if that can be said at once, and closes.
    fn refuse(self, is_encrypted: bool) {
        if is_encrypted {
            return;
        }
        let _ = match self {
            Accepted::Tcp(stream) => stream.try_write(FULL),
            Accepted::Unix(stream) => stream.try_write(FULL),
        };
    }
}

/// The stream, decrypted; nothing where that fails.
async fn opened(accepted: Accepted, certificates: Option<&Certificates>) -> Option<Patient> {
    let plain: Box<dyn Io> = match accepted {
        Accepted::Tcp(stream) => {
            // Events are small, and have to leave at once.
            let _ = stream.set_nodelay(true);
            Box::new(stream)
        }
        Accepted::Unix(stream) => Box::new(stream),
    };
    // Below the encryption, so that a handshake is not left unread either.
    let plain = Patient::new(plain, WRITE_TIMEOUT);
    let Some(certificates) = certificates else { return Some(plain) };
    let shaken = tokio::time::timeout(HANDSHAKE_TIMEOUT, certificates.acceptor().accept(plain)).await;
    match shaken {
        Ok(Ok(stream)) => Some(Patient::new(Box::new(stream), WRITE_TIMEOUT)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a client of --http could not be talked to");
            None
        }
        Err(_) => None,
    }
}

async fn serve(stream: Patient, peer: Peer, router: Router) {
    let router = TowerToHyperService::new(router);
    let answered = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        router.call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER_MAX_BYTES)
        .serve_connection(TokioIo::new(stream), answered);
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection to --http ended early");
    }
}

#[cfg(test)]
mod tests {
    use super::FULL;

    #[test]
    fn what_is_said_to_one_too_many_is_an_answer() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{head} {}", body.len());
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}
