//! A way to a server that can be made slow, silent or cut off, while the server and everybody else's way to it stay as they are.
//!
//! It hands bytes on and knows nothing of what they mean, so encryption passes through it. It needs no rights. Torture has one for each candidate
//! and server, and the tests of the stores use it too.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bellwether_deadman::boot_now;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// A port of the loopback that leads to a server.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    way: Arc<watch::Sender<Ending>>,
    turns: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
    listener: JoinHandle<()>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ending {
    /// Nothing arrives, on either side, until it is open again; then everything does, as after a partition.
    silent: bool,
    /// Answers take so much longer.
    slow: Duration,
    /// Whoever comes is turned away.
    closed: bool,
    /// Connections of an earlier number have been cut.
    cuts: u64,
}

impl Proxy {
    /// To this `HOST:PORT`, which is looked up for every connection.
    ///
    /// # Errors
    /// When no port of the loopback is free.
    pub async fn to(server: impl Into<String>) -> io::Result<Proxy> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = socket.local_addr()?;
        let way = Arc::new(watch::Sender::new(Ending::default()));
        let (turns, connections) = (Arc::default(), Arc::default());
        let counts = (Arc::clone(&turns), Arc::clone(&connections));
        let listener = tokio::spawn(listen(socket, server.into().into(), Arc::clone(&way), counts));
        Ok(Proxy { address, way, turns, connections, listener })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its own port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// How often somebody asked again after the server had answered, on all connections together: round trips. What is asked
    /// while an answer is out, as when it is [slow](Proxy::slow), belongs to the same.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// How many connections were let through so far.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// From now on nothing arrives, and nobody is told.
    pub fn silence(&self) {
        self.way.send_modify(|way| way.silent = true);
    }

    /// From now on answers take so much longer.
    pub fn slow(&self, by: Duration) {
        self.way.send_modify(|way| way.slow = by);
    }

    /// Resets all connections, and turns whoever comes away.
    pub fn cut(&self) {
        self.way.send_modify(|way| (way.closed, way.cuts) = (true, way.cuts + 1));
    }

    /// Everything passes again; what waited arrives now.
    pub fn heal(&self) {
        self.way.send_modify(|way| *way = Ending { cuts: way.cuts, ..Ending::default() });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listener.abort();
        self.cut();
    }
}

async fn listen(
    socket: TcpListener,
    server: Arc<str>,
    way: Arc<watch::Sender<Ending>>,
    (turns, connections): (Arc<AtomicU64>, Arc<AtomicU64>),
) {
    loop {
        let near = match socket.accept().await {
            Ok((near, _)) => near,
            // Out of descriptors, for example: whoever comes later may be let through.
            Err(_) => {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if way.borrow().closed {
            let _ = near.set_zero_linger();
            continue;
        }
        // Not one after the other: a server that does not answer must not hold up the next connection.
        let (server, way) = (Arc::clone(&server), Arc::clone(&way));
        tokio::spawn(join(near, server, way, (Arc::clone(&turns), Arc::clone(&connections))));
    }
}

/// Joins a connection with one to the server.
async fn join(
    near: TcpStream,
    server: Arc<str>,
    way: Arc<watch::Sender<Ending>>,
    (turns, connections): (Arc<AtomicU64>, Arc<AtomicU64>),
) {
    // Those that are cut meanwhile are cut too.
    let mut cut = way.subscribe();
    let began = cut.borrow_and_update().cuts;
    // A cut is a reset, not a polite end.
    let _ = near.set_zero_linger();
    let far = tokio::select! {
        far = TcpStream::connect(&*server) => far,
        _ = cut.wait_for(|way| way.cuts > began) => return,
    };
    let Ok(far) = far else { return };
    connections.fetch_add(1, Ordering::Relaxed);
    let _ = far.set_zero_linger();
    for stream in [&near, &far] {
        let _ = stream.set_nodelay(true);
    }
    let (near, far) = (near.into_split(), far.into_split());
    let asked = Arc::new(AtomicBool::new(false));
    let asks = Arc::clone(&asked);
    let asks = move || {
        if !asks.swap(true, Ordering::Relaxed) {
            turns.fetch_add(1, Ordering::Relaxed);
        }
    };
    let answers = move || asked.store(false, Ordering::Relaxed);
    tokio::spawn(carry(near.0, far.1, (way.subscribe(), began), false, asks));
    tokio::spawn(carry(far.0, near.1, (way.subscribe(), began), true, answers));
}

/// Before connections are accepted again when one could not be.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    (mut way, began): (watch::Receiver<Ending>, u64),
    answers: bool,
    arrives: impl Fn() + Send,
) {
    let (mut cut, now) = (way.clone(), way.clone());
    // What is slow is late, and not less: the next may be sent before the last has arrived.
    let (sent, mut arriving) = mpsc::unbounded_channel();
    let sending = async move {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            let slow = if answers { now.borrow().slow } else { Duration::ZERO };
            if sent.send((boot_now() + slow, bytes[..count].to_vec())).is_err() {
                return;
            }
        }
    };
    let receiving = async move {
        while let Some((due, bytes)) = arriving.recv().await {
            tokio::time::sleep(due.since(boot_now())).await;
            if way.wait_for(|way| !way.silent).await.is_err() {
                return;
            }
            // Before it is written: whoever gets it may be quick.
            arrives();
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        _ = async { tokio::join!(sending, receiving) } => {}
        _ = cut.wait_for(|way| way.cuts > began) => {}
    }
}
