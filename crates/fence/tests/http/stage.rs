//! A server on the loopback, and requests to it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::routing::any;
use bellwether_core::{ElectionName, Epoch};
use bellwether_fence::Stamp;
use bellwether_fence::http::{FenceLayer, Permit, stamp};
use http::HeaderMap;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

pub(crate) fn election() -> ElectionName {
    ElectionName::new("reports №1").unwrap()
}

pub(crate) fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

/// What a handler does and when: it tells that it has begun, and `/slow` waits until it is let go.
pub(crate) struct Stage {
    address: SocketAddr,
    pub(crate) begun: mpsc::UnboundedReceiver<u64>,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

struct Shared {
    begin: mpsc::UnboundedSender<u64>,
    go: Notify,
    effects: Mutex<Vec<String>>,
}

/// Has an effect when it begins and when it ends, and yields in between.
async fn work(State(shared): State<Arc<Shared>>, request: Request) -> String {
    let permit = request.extensions().get::<Permit>().cloned();
    let epoch = permit.as_ref().map_or(0, |permit| permit.epoch().get());
    let note = |what: &str| shared.effects.lock().unwrap().push(format!("{epoch} {what}"));
    note("begins");
    shared.begin.send(epoch).unwrap();
    match request.uri().path() {
        "/slow" => shared.go.notified().await,
        "/leaves-work" => {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                shared.go.notified().await;
                shared.effects.lock().unwrap().push(format!("{epoch} ends later"));
                drop(permit);
            });
        }
        _ => tokio::task::yield_now().await,
    }
    note("ends");
    format!("handled {epoch}")
}

impl Stage {
    pub(crate) async fn new(layer: FenceLayer) -> Stage {
        let (begin, begun) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { begin, go: Notify::new(), effects: Mutex::default() });
        let router = Router::new().fallback(any(work)).with_state(Arc::clone(&shared)).layer(layer);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(router.clone());
                let serving = hyper::server::conn::http1::Builder::new();
                tokio::spawn(serving.serve_connection(TokioIo::new(stream), service));
            }
        });
        Stage { address, begun, shared, server }
    }

    /// Lets one handler of `/slow` end, or work that `/leaves-work` left.
    pub(crate) fn go(&self) {
        self.shared.go.notify_one();
    }

    pub(crate) fn effects(&self) -> Vec<String> {
        self.shared.effects.lock().unwrap().clone()
    }

    /// A request with these headers, sent; the answer is awaited by whoever wants it.
    pub(crate) async fn send(&self, method: &str, path: &str, headers: &HeaderMap) -> Sent {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n");
        for (name, value) in headers {
            text += &format!("{name}: {}\r\n", value.to_str().unwrap());
        }
        stream.write_all(format!("{text}\r\n").as_bytes()).await.unwrap();
        Sent(stream)
    }

    /// A POST of that epoch.
    pub(crate) async fn post(&self, path: &str, number: u64) -> Sent {
        self.send("POST", path, &stamped(number)).await
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.server.abort();
    }
}

pub(crate) fn stamped(number: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    stamp(&mut headers, &Stamp::new(election(), epoch(number)));
    headers
}

/// A request that was sent. Dropped, the client goes away.
pub(crate) struct Sent(TcpStream);

impl Sent {
    /// The status, the head and the body.
    pub(crate) async fn answer(mut self) -> (u16, String, String) {
        let mut text = String::new();
        self.0.read_to_string(&mut text).await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_owned(), body.to_owned())
    }

    pub(crate) async fn status(self) -> u16 {
        self.answer().await.0
    }
}
