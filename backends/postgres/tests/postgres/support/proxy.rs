//! A way to the server that can be cut: the client sees the end of its connections, the server sees nothing.

use std::sync::Arc;

use bellwether_postgres::{Config, Transport};
use bellwether_support::servers::postgres::Server;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Cuts what goes through it, and lets nothing through while it is shut.
#[derive(Clone)]
pub(crate) struct Way(Arc<watch::Sender<State>>);

#[derive(Clone, Copy, Default)]
struct State {
    cuts: usize,
    shut: bool,
}

impl Way {
    pub(crate) fn new() -> Way {
        Way(Arc::new(watch::channel(State::default()).0))
    }

    /// To that server, by this way.
    pub(crate) fn to(&self, server: &Server) -> Config {
        let (way, port) = (self.clone(), server.port);
        Config::from_url(&server.url()).unwrap().connect_with(move |host, given| {
            assert_eq!((host.as_str(), given), ("127.0.0.1", port));
            way.clone().connect(port)
        })
    }

    async fn connect(self, port: u16) -> std::io::Result<Transport> {
        let mut state = self.0.subscribe();
        let cuts = state.borrow().cuts;
        if state.borrow().shut {
            return Err(std::io::ErrorKind::ConnectionRefused.into());
        }
        let mut there = TcpStream::connect(("127.0.0.1", port)).await?;
        let (near, mut far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            let ended = tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut far, &mut there) => true,
                _ = state.wait_for(|state| state.cuts > cuts) => false,
            };
            let _ = far.shutdown().await;
            drop(far);
            if !ended {
                // Half open: the server is told nothing for as long as the test lasts.
                std::future::pending::<()>().await;
            }
            drop(there);
        });
        Ok(Transport::new(near))
    }

    /// Ends all that goes through it, on the client's side only.
    pub(crate) fn cut(&self) {
        self.0.send_modify(|state| state.cuts += 1);
    }

    pub(crate) fn shut(&self, shut: bool) {
        self.0.send_modify(|state| state.shut = shut);
    }
}
