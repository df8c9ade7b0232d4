//! A node to talk to, and the bound on every wait.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bellwether_cluster::transport::{
    CallError, Connection, Dialler, Hello, Host, Intended, Limits, Listener, PartSender, Purpose, Refused,
    Secret, Security, Welcome,
};
use bellwether_cluster::{ClusterId, NodeId, NodeName};
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

/// More than anything here takes on a slow machine, and less than the silence after which a connection is closed anyway.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

pub(crate) const CLUSTER: ClusterId = ClusterId::from_random(0xc1);
pub(crate) const NODE: NodeId = NodeId::from_random(0xa);

pub(crate) fn name(text: &str) -> NodeName {
    NodeName::new(text).unwrap()
}

/// Fails the test if it takes too long.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("it took too long")
}

/// A node that does what requests say.
#[derive(Default)]
pub(crate) struct Node {
    pub(crate) greeted: AtomicUsize,
    /// Requests that run now.
    pub(crate) running: Arc<watch::Sender<usize>>,
    /// The most that ran at once.
    pub(crate) most: Arc<AtomicUsize>,
    /// Lets those go on who asked to `wait`.
    pub(crate) go: Arc<Notify>,
    /// What to answer to every hello, in place of a welcome.
    pub(crate) refuses: Option<Refused>,
}

impl Host for Node {
    fn greet(&self, _: &Hello) -> Result<Welcome, Refused> {
        self.greeted.fetch_add(1, Ordering::SeqCst);
        match &self.refuses {
            Some(refused) => Err(refused.clone()),
            None => Ok(Welcome { node: NODE, name: name("a"), cluster: Some(CLUSTER) }),
        }
    }

    fn serve(&self, hello: Arc<Hello>, request: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, String>> {
        let running = Running::begin(&self.running, &self.most);
        let go = Arc::clone(&self.go);
        Box::pin(async move {
            let _running = running;
            let text = String::from_utf8_lossy(&request).into_owned();
            let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
            match word {
                "wait" => {
                    go.notified().await;
                    Ok(rest.into())
                }
                "go" => {
                    go.notify_waiters();
                    Ok(Vec::new())
                }
                "never" => pending().await,
                "fail" => Err(rest.to_owned()),
                "panic" => panic!("a request asked for this panic"),
                "long" => Ok(vec![b'x'; rest.parse().unwrap()]),
                "purpose" => Ok(format!("{:?}", hello.purpose).into_bytes()),
                _ => Ok(request),
            }
        })
    }

    fn stream(
        &self,
        _: Arc<Hello>,
        request: Vec<u8>,
        parts: PartSender,
    ) -> BoxFuture<'static, Result<(), String>> {
        let running = Running::begin(&self.running, &self.most);
        Box::pin(async move {
            let _running = running;
            let text = String::from_utf8(request).unwrap();
            let (word, count) = text.split_once(' ').unwrap_or((&text, "0"));
            for number in 0..count.parse::<u32>().unwrap() {
                parts.send(number.to_string().into_bytes()).await.map_err(|gone| gone.to_string())?;
            }
            match word {
                "count" => Ok(()),
                "fail" => Err("no more".to_owned()),
                _ => pending().await,
            }
        })
    }
}

/// Counts a request for as long as the host works on it.
struct Running(Arc<watch::Sender<usize>>);

impl Running {
    fn begin(running: &Arc<watch::Sender<usize>>, most: &AtomicUsize) -> Running {
        running.send_modify(|count| {
            *count += 1;
            most.fetch_max(*count, Ordering::SeqCst);
        });
        Running(Arc::clone(running))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Node {
    /// Returns when so many requests run.
    pub(crate) async fn runs(&self, count: usize) {
        soon(self.running.subscribe().wait_for(|now| *now == count)).await.unwrap();
    }
}

/// A listening node, on loopback without anything else unless a test says so.
pub(crate) struct Served {
    pub(crate) node: Arc<Node>,
    pub(crate) listener: Listener,
    pub(crate) address: String,
}

pub(crate) async fn serve() -> Served {
    serve_with(Node::default(), Security::LoopbackOnly, Limits::default()).await
}

pub(crate) async fn serve_with(node: Node, security: Security, limits: Limits) -> Served {
    let node = Arc::new(node);
    let host = Arc::clone(&node);
    let listener = Listener::bind_with("127.0.0.1:0", security, host, limits).await.unwrap();
    let address = listener.local_address().to_string();
    Served { node, listener, address }
}

pub(crate) fn client() -> Hello {
    Hello { purpose: Purpose::Client, cluster: Some(CLUSTER), from: None, intended: Intended::Anyone }
}

pub(crate) fn dialler() -> Dialler {
    Dialler::new(Security::LoopbackOnly).unwrap()
}

pub(crate) async fn connect(served: &Served) -> Connection {
    soon(dialler().connect(&served.address, &client())).await.unwrap()
}

pub(crate) fn secret(text: &str) -> Security {
    Security::Secret(Secret::new(text.as_bytes()).unwrap())
}

/// A call with patience, in text.
pub(crate) async fn ask(connection: &Connection, request: &str) -> Result<String, CallError> {
    let answer = connection.call(request.into(), PATIENCE).await?;
    Ok(String::from_utf8(answer).unwrap())
}

/// Whether the node still serves others.
pub(crate) async fn is_well(served: &Served) {
    assert_eq!(soon(ask(&connect(served).await, "echo")).await, Ok("echo".to_owned()));
}
