//! A Kubernetes API server of the test's own: etcd (with its fsync) and kube-apiserver on the loopback, with TLS and RBAC, in a
//! temporary directory. Both are ended and the directory is removed with the test, also when the test program is killed.
//!
//! There is neither a controller nor a node: objects stay as they are written, and namespaces that are deleted keep terminating.
//! The programs are those of `KUBEBUILDER_ASSETS`, or those that `cargo xtask env --install` provides.

mod certificates;
mod client_go;
pub(super) mod ending;
mod https;
mod identities;
#[path = "../../../../xtask/src/kubernetes/programs.rs"]
pub(super) mod programs;
mod requests;

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::own_address;
use crate::netns::Node;
use crate::{Scratch, Stopped, until, until_blocking};
use certificates::Certificates;
pub use client_go::{ClientGo, Timing, Transition};
use ending::Ending;
use https::Https;
pub use https::{Answer, HalfSent};
pub use identities::{ADMIN, LIMITED};
pub use requests::Request;

/// How long the server may take to answer before a test calls it silent.
const SILENT: Duration = Duration::from_secs(5);

/// An API server with its etcd. The API server may be down; etcd never is.
#[derive(Debug)]
pub struct Server {
    // Before the directory, which the processes write to.
    ending: Ending,
    scratch: Scratch,
    node: Option<Node>,
    port: u16,
    https: Https,
    etcd: String,
    process: Option<Child>,
}

impl Server {
    /// The one that all tests of this program share, each in a namespace of its own.
    pub async fn shared() -> &'static Server {
        static SHARED: OnceCell<Server> = OnceCell::const_new();
        SHARED.get_or_init(Server::start).await
    }

    /// A fresh one.
    pub async fn start() -> Server {
        Server::begin(None).await
    }

    /// A fresh one on that machine, where only its neighbours reach it.
    pub async fn start_on(node: &Node) -> Server {
        Server::begin(Some(node.clone())).await
    }

    async fn begin(node: Option<Node>) -> Server {
        let scratch = Scratch::new();
        let dir = scratch.path();
        let certificates = Certificates::make(address(node.as_ref()));
        certificates.write(dir);
        identities::write(dir);
        requests::configure(dir);
        let (etcd, url) = start_etcd(dir, node.as_ref());
        let ending = Ending::of_group(etcd, dir);
        let (port, https) = (lasting_port(), certificates.client());
        let mut server = Server { ending, scratch, node, port, https, etcd: url, process: None };
        server.up().await;
        server
    }

    /// Starts the API server, on the same port as before, and waits until it is ready.
    pub async fn up(&mut self) {
        assert!(self.process.is_none(), "the API server is up");
        let dir = self.scratch.path();
        let address = self.address();
        let mut command =
            command(&programs::apiserver().unwrap_or_else(|| missing("kube-apiserver")), self.node.as_ref());
        command.arg(format!("--etcd-servers={}", self.etcd));
        command.args([format!("--bind-address={address}"), format!("--advertise-address={address}")]);
        command.arg(format!("--secure-port={}", self.port));
        // Without nodes and controllers, nobody would give pods the tokens that this plugin waits for. The address of a
        // loopback must not become an endpoint.
        command.args(["--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none"]);
        command.args(["--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24"]);
        command.args(certificates::flags(dir)).args(identities::flags(dir)).args(requests::flags(dir));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log(dir, "apiserver"));
        command.process_group(self.ending.group());
        self.process = Some(command.spawn().expect("the API server starts"));
        until(|| async {
            match self.asked(ADMIN, "GET", "/readyz", None).await {
                Ok(Answer { status: 200, .. }) => Ok(()),
                other => Err(format!("the API server does not come up: {other:?}\n{}", self.log())),
            }
        })
        .await;
    }

    /// Ends the API server: `TERM` in order, `KILL` as a crash. Its objects and its port stay.
    pub fn down(&mut self, signal: &str) {
        if let Some(mut process) = self.process.take() {
            let _ = Command::new("kill").args([&format!("-{signal}"), &process.id().to_string()]).status();
            until_blocking(|| match process.try_wait() {
                Ok(Some(_)) => Ok(()),
                _ => Err(format!("the API server does not end after {signal}")),
            });
        }
    }

    /// Ends the API server in order, and starts it again.
    pub async fn restart(&mut self) {
        self.down("TERM");
        self.up().await;
    }

    /// Stops the API server where it is, with its connections open, until the answer is dropped.
    pub fn pause(&self) -> Stopped {
        Stopped::process(self.pid())
    }

    /// The process of the API server.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("the API server is up").id()
    }

    /// The process group that ends with it, also when the test program is killed.
    pub fn group(&self) -> i32 {
        self.ending.group()
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("https://{}:{}", self.address(), self.port)
    }

    /// The certificate of whoever signed that of the server, as a file.
    pub fn ca(&self) -> PathBuf {
        certificates::ca(self.scratch.path())
    }

    /// A kubeconfig file for this user: [`ADMIN`], who may do everything, or one of [`LIMITED`], who may do what a test permits.
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        identities::kubeconfig(self.scratch.path(), user, &self.url())
    }

    /// The URL of a backend in that namespace for this user.
    pub fn backend(&self, user: &str, namespace: &str) -> String {
        format!("kubernetes://{namespace}?kubeconfig={}", self.kubeconfig(user).display())
    }

    /// A kubeconfig file for this service account, with a token that the server made for it.
    pub async fn kubeconfig_of_account(&self, namespace: &str, name: &str) -> PathBuf {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let token = self.api("POST", &path, json!({ "spec": {} })).await["status"]["token"].clone();
        let token = token.as_str().expect("a token");
        identities::kubeconfig_with(self.scratch.path(), name, token, &self.url())
    }

    /// As [`Server::kubeconfig`], by way of a [`Proxy`](crate::Proxy) on this port of the loopback.
    pub fn kubeconfig_through(&self, proxy: u16, user: &str) -> PathBuf {
        identities::kubeconfig(self.scratch.path(), user, &format!("https://127.0.0.1:{proxy}"))
    }

    /// One request as an administrator, which must succeed.
    pub async fn api(&self, method: &str, path: &str, body: Value) -> Value {
        let body = if body.is_null() { None } else { Some(&body) };
        let answer = self.asked(ADMIN, method, path, body).await.expect("the API server answers");
        assert!((200..300).contains(&answer.status), "{method} {path}: {answer:?}");
        answer.json()
    }

    /// One request as this user, whatever comes of it.
    pub async fn asked(
        &self,
        user: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, String> {
        let asking =
            async { self.https.ask(self.connect()?, &identities::token(user), method, path, body).await };
        tokio::time::timeout(SILENT, asking).await.map_err(|_| format!("no answer within {SILENT:?}"))?
    }

    /// A POST of this user that keeps the server busy: its last byte never comes.
    pub async fn half_sent(&self, user: &str, path: &str) -> HalfSent {
        let stream = self.connect().expect("the API server is up");
        self.https.half_send(stream, &identities::token(user), path).await.expect("the API server reads")
    }

    fn connect(&self) -> Result<TcpStream, String> {
        let at = SocketAddrV4::new(self.address(), self.port).into();
        let connect = move || TcpStream::connect_timeout(&at, SILENT);
        let stream = match &self.node {
            Some(node) => node.inside(connect),
            None => connect(),
        };
        stream.map_err(|error| format!("{at}: {error}"))
    }

    /// Makes a namespace.
    pub async fn namespace(&self, name: &str) {
        self.api("POST", "/api/v1/namespaces", json!({ "metadata": { "name": name } })).await;
    }

    /// All requests of users so far, in their order.
    pub fn requests(&self) -> Vec<Request> {
        requests::read(self.scratch.path())
    }

    /// What the API server has logged since it was last started.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.scratch.path().join("apiserver.log")).unwrap_or_default()
    }

    fn address(&self) -> Ipv4Addr {
        address(self.node.as_ref())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.down("KILL");
    }
}

/// On an address that nobody else has, so that its ports are free.
fn start_etcd(dir: &Path, node: Option<&Node>) -> (Child, String) {
    let address = own_address();
    let (clients, peers) = (format!("http://{address}:2379"), format!("http://{address}:2380"));
    let mut command = command(&programs::etcd().unwrap_or_else(|| missing("etcd")), node);
    command.arg("--data-dir").arg(dir.join("etcd"));
    for flag in ["--listen-client-urls", "--advertise-client-urls"] {
        command.args([flag, &clients]);
    }
    for flag in ["--listen-peer-urls", "--initial-advertise-peer-urls"] {
        command.args([flag, &peers]);
    }
    command.args(["--initial-cluster", &format!("default={peers}")]);
    super::etcd::permit_architecture(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log(dir, "etcd"));
    (command.process_group(0).spawn().expect("etcd starts"), clients)
}

fn address(node: Option<&Node>) -> Ipv4Addr {
    node.map_or(Ipv4Addr::LOCALHOST, |node| node.address.parse().expect("a node has an address"))
}

/// Below those that the kernel gives to whoever asks for any: nobody takes it while the server is down.
fn lasting_port() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let candidates = std::iter::repeat_with(|| {
        std::process::id().wrapping_mul(7).wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed))
    });
    let mut ports =
        candidates.take(1_000).map(|number| 20_000 + u16::try_from(number % 12_000).expect("small"));
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).expect("a free port")
}

fn command(program: &Path, node: Option<&Node>) -> Command {
    node.map_or_else(|| Command::new(program), |node| node.command(program))
}

pub(super) fn log(dir: &Path, name: &str) -> std::fs::File {
    std::fs::File::create(dir.join(format!("{name}.log"))).expect("a scratch directory is writable")
}

/// Helm, which renders charts and needs no server for that.
pub fn helm() -> PathBuf {
    programs::HELM.built().unwrap_or_else(|| missing("helm"))
}

pub(super) fn missing(program: &str) -> PathBuf {
    panic!("there is no {program}: run `cargo xtask env --install`, which provides it")
}
