//! A NATS server of the test's own: JetStream in a temporary directory, on ports that it picks itself, ended and removed with the
//! test.
//!
//! The current one is that of `BELLWETHER_TEST_NATS` (a program), of the `PATH`, or the copy that `cargo xtask test` keeps in
//! the user's cache; the old one that of `BELLWETHER_TEST_NATS_OLD`, or a copy beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use async_nats::HeaderMap;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::own_address;
use crate::netns::Node;
use crate::{Scratch, until, until_blocking};

/// Where servers on machines of their own find each other.
const ROUTE_PORT: u16 = 6_222;
/// Where a hub listens for its leaf nodes.
const LEAF_PORT: u16 = 7_422;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A current one.
    Current,
    /// The 2.9 that Debian ships.
    Old,
}

/// A server, or what is left of one that is down.
#[derive(Debug)]
pub struct Server {
    scratch: Scratch,
    version: Version,
    /// The machine it runs on, if not this one.
    node: Option<Node>,
    process: Option<Child>,
    port: Option<u16>,
    monitor: Option<u16>,
}

impl Server {
    /// A fresh one, open to everybody.
    pub async fn start(version: Version) -> Server {
        Server::start_with(version, "").await
    }

    /// A fresh one with this in its configuration.
    pub async fn start_with(version: Version, config: &str) -> Server {
        Server::begin(version, config, None).await
    }

    /// A fresh one on that machine, where only its neighbours reach it.
    pub async fn start_on(version: Version, node: &Node) -> Server {
        Server::begin(version, "", Some(node.clone())).await
    }

    async fn begin(version: Version, config: &str, node: Option<Node>) -> Server {
        let scratch = Scratch::new();
        let mut server = Server { scratch, version, node, process: None, port: None, monitor: None };
        server.configure(config);
        server.up().await;
        server
    }

    /// Puts this in its configuration, in the place of what was there. It counts from the next start or [`Server::reload`] on.
    pub fn configure(&self, config: &str) {
        std::fs::write(self.scratch.path().join("server.conf"), config)
            .expect("a scratch directory is writable");
    }

    /// Has it read its configuration again.
    pub fn reload(&self) {
        self.signal("-HUP");
    }

    /// This many, as one cluster. Ready when a leader of it all is chosen.
    pub async fn cluster(version: Version, size: usize) -> Vec<Server> {
        let members = (1..=size).map(|_| (format!("{}:{ROUTE_PORT}", own_address()), None)).collect();
        Server::joined(version, members).await
    }

    /// One on each of these machines, as one cluster.
    pub async fn cluster_on(version: Version, nodes: &[Node]) -> Vec<Server> {
        let member = |node: &Node| (format!("{}:{ROUTE_PORT}", node.address), Some(node.clone()));
        Server::joined(version, nodes.iter().map(member).collect()).await
    }

    /// A hub and a leaf node of it, each with JetStream in a domain of its own name (`hub`, `leaf`). Ready when they are joined.
    pub async fn hub_and_leaf(version: Version) -> [Server; 2] {
        let address = format!("{}:{LEAF_PORT}", own_address());
        let domain = |name: &str| format!("server_name: {name}\njetstream {{ domain: {name} }}\n");
        let hub = format!("{}leafnodes {{ listen: \"{address}\" }}", domain("hub"));
        let remote = format!("leafnodes {{ remotes: [ {{ url: \"nats-leaf://{address}\" }} ] }}");
        let hub = Server::start_with(version, &hub).await;
        let leaf = Server::start_with(version, &format!("{}{remote}", domain("leaf"))).await;
        until(|| async {
            match leaf.admin().await.request("$JS.hub.API.INFO", "".into()).await {
                Ok(_) => Ok(()),
                Err(silent) => Err(format!("the leaf node does not reach the hub: {silent}")),
            }
        })
        .await;
        [hub, leaf]
    }

    /// Each with the address by which the others find it.
    async fn joined(version: Version, members: Vec<(String, Option<Node>)>) -> Vec<Server> {
        let size = members.len();
        let routes: Vec<String> =
            members.iter().map(|(address, _)| format!("\"nats://{address}\"")).collect();
        let routes = routes.join(", ");
        let servers = members.into_iter().enumerate().map(|(number, (address, node))| {
            let config = format!(
                "server_name: n{number}\ncluster {{ name: c, listen: \"{address}\", routes: [{routes}] }}\n"
            );
            async move { Server::begin(version, &config, node).await }
        });
        let servers: Vec<Server> = futures_util::future::join_all(servers).await;
        until(|| async {
            let mut leaders = BTreeSet::new();
            for server in &servers {
                let meta = server.monitored("/jsz").await["meta_cluster"].clone();
                if meta["cluster_size"] != size {
                    return Err(format!("the cluster is not whole: {meta}"));
                }
                leaders.insert(meta["leader"].as_str().map(ToOwned::to_owned));
            }
            let agreed = leaders.len() == 1 && !leaders.contains(&None);
            if agreed { Ok(()) } else { Err(format!("the servers follow different leaders: {leaders:?}")) }
        })
        .await;
        servers
    }

    /// Starts it, again on the same port if it was up before.
    pub async fn up(&mut self) {
        let dir = self.scratch.path();
        let log = std::fs::File::create(dir.join("log")).expect("a scratch directory is writable");
        let port = |port: Option<u16>| port.map_or_else(|| "-1".to_owned(), |port| port.to_string());
        let mut command = match &self.node {
            Some(node) => node.command(&program(self.version)),
            None => Command::new(program(self.version)),
        };
        command.arg("-c").arg(dir.join("server.conf")).arg("-js").arg("-sd").arg(dir.join("data"));
        command.args(["-a", self.address(), "-p", &port(self.port), "-m", &port(self.monitor)]);
        command.arg("--ports_file_dir").arg(dir);
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
        let process = command.spawn().expect("the server starts");
        let ports = dir.join(format!("nats-server_{}.ports", process.id()));
        self.process = Some(process);
        let told = until(|| async {
            let text = std::fs::read_to_string(&ports).unwrap_or_default();
            if let Ok(told) = serde_json::from_str::<Value>(&text) {
                let port = told["nats"][0].as_str().map_or(0, port_of);
                // On another machine it cannot be tried from here; it tells its ports when it listens.
                if self.node.is_some() || TcpStream::connect((self.address(), port)).await.is_ok() {
                    return Ok(told);
                }
            }
            let log = std::fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default();
            Err(format!("the server does not come up:\n{log}"))
        })
        .await;
        self.port = told["nats"][0].as_str().map(port_of);
        self.monitor = told["monitoring"][0].as_str().map(port_of);
    }

    /// Ends it: `TERM` in order, `KILL` as a crash.
    pub fn down(&mut self, signal: &str) {
        if let Some(mut process) = self.process.take() {
            let _ = Command::new("kill").args([&format!("-{signal}"), &process.id().to_string()]).status();
            let _ = process.wait();
        }
    }

    /// Stops it where it is; when this returns it does nothing any more, and its connections stay open.
    pub fn stop(&self) {
        self.signal("-STOP");
        let status = format!("/proc/{}/stat", self.pid());
        let stopped = || std::fs::read_to_string(&status).is_ok_and(|text| text.contains(") T "));
        until_blocking(|| stopped().then_some(()).ok_or("the server does not stop"));
    }

    /// Lets it go on after [`Server::stop`].
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.pid().to_string()]).status();
        assert!(status.expect("there is a kill").success());
    }

    /// Its port on the loopback.
    pub fn port(&self) -> u16 {
        self.port.expect("the server told its port")
    }

    /// Its URL, without bucket or user.
    pub fn url(&self) -> String {
        format!("nats://{}:{}", self.address(), self.port())
    }

    fn address(&self) -> &str {
        self.node.as_ref().map_or("127.0.0.1", |node| &node.address)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("the server is up").id()
    }

    /// A connection of an administrator.
    pub async fn admin(&self) -> async_nats::Client {
        async_nats::connect(self.url()).await.expect("the server lets us in")
    }

    /// One call of the JetStream API.
    pub async fn api(&self, call: &str, body: Value) -> Value {
        self.asked(call, body).await.expect("JetStream answers")
    }

    /// As [`Server::api`], of servers that may have no leader at the moment, and then say nothing.
    pub async fn asked(&self, call: &str, body: Value) -> Result<Value, String> {
        let payload = serde_json::to_vec(&body).expect("JSON");
        let answer = self.admin().await.request(format!("$JS.API.{call}"), payload.into()).await;
        let answer = answer.map_err(|silent| format!("no answer to {call}: {silent}"))?;
        Ok(serde_json::from_slice(&answer.payload).expect("JSON"))
    }

    /// Makes a bucket, with these settings beside the usual ones. Asked twice for the same one, the servers make one: in a
    /// cluster that has just come up an answer can be lost.
    pub async fn bucket(&self, name: &str, settings: Value) {
        let mut body = json!({
            "name": format!("KV_{name}"), "subjects": [format!("$KV.{name}.>")], "max_msgs_per_subject": 1,
            "storage": "file", "retention": "limits", "discard": "new", "num_replicas": 1,
            "allow_rollup_hdrs": true, "deny_delete": true, "allow_direct": true,
        });
        for (key, value) in settings.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        let call = format!("STREAM.CREATE.KV_{name}");
        let made = until(|| self.asked(&call, body.clone())).await;
        assert!(made["error"].is_null(), "{made}");
    }

    /// Takes a bucket away.
    pub async fn remove_bucket(&self, name: &str) {
        let removed = self.api(&format!("STREAM.DELETE.KV_{name}"), json!({})).await;
        assert!(removed["error"].is_null(), "{removed}");
    }

    /// The number of the last write to a bucket.
    pub async fn last_sequence(&self, bucket: &str) -> u64 {
        let info = self.api(&format!("STREAM.INFO.KV_{bucket}"), json!({})).await;
        info["state"]["last_seq"].as_u64().unwrap_or_else(|| panic!("no such bucket: {info}"))
    }

    /// Every bucket with the number of its last write.
    pub async fn revisions(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        loop {
            let page = self.api("STREAM.LIST", json!({ "offset": all.len() })).await;
            let streams = page["streams"].as_array().cloned().unwrap_or_default();
            if streams.is_empty() {
                return all;
            }
            all.extend(streams.iter().map(|stream| {
                let name = stream["config"]["name"].as_str().expect("a name").trim_start_matches("KV_");
                (name.to_owned(), stream["state"]["last_seq"].as_u64().expect("a number"))
            }));
        }
    }

    /// The keys in a bucket, those of which only a mark is left included.
    pub async fn keys(&self, bucket: &str) -> Vec<String> {
        let info = self.api(&format!("STREAM.INFO.KV_{bucket}"), json!({ "subjects_filter": ">" })).await;
        let prefix = format!("$KV.{bucket}.");
        let subjects = info["state"]["subjects"].as_object();
        let mut keys: Vec<String> = subjects
            .into_iter()
            .flat_map(|subjects| subjects.keys().map(|subject| subject.replace(&prefix, "")))
            .collect();
        keys.sort();
        keys
    }

    /// Writes a key as somebody with a tool would; `None` deletes it.
    pub async fn put(&self, bucket: &str, key: &str, value: Option<&[u8]>) {
        let mut headers = HeaderMap::new();
        if value.is_none() {
            headers.insert("KV-Operation", "PURGE");
            headers.insert("Nats-Rollup", "sub");
        }
        let (subject, value) = (format!("$KV.{bucket}.{key}"), value.unwrap_or_default().to_vec());
        let done = self.admin().await.request_with_headers(subject, headers, value.into()).await;
        let done: Value = serde_json::from_slice(&done.expect("JetStream answers").payload).expect("JSON");
        assert!(done["error"].is_null(), "{done}");
    }

    /// How many messages all clients have sent so far, by the server's own count, those that have gone included.
    pub async fn messages_sent(&self) -> u64 {
        let connections = self.monitored("/connz?subs=0&state=all&limit=65536").await;
        let all = connections["connections"].as_array().expect("a list of connections");
        all.iter().map(|connection| connection["in_msgs"].as_u64().expect("a number")).sum()
    }

    /// The servers of a cluster in one URL, without bucket or user.
    pub fn url_of_all(servers: &[Server]) -> String {
        let hosts: Vec<String> =
            servers.iter().map(|server| format!("{}:{}", server.address(), server.port())).collect();
        format!("nats://{}", hosts.join(","))
    }

    /// What the monitoring port says, as `/connz`.
    pub async fn monitored(&self, path: &str) -> Value {
        let port = self.monitor.expect("the server told its port");
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        let answer = match &self.node {
            Some(node) => asked_there(node, port, &request),
            None => {
                let stream = TcpStream::connect((self.address(), port)).await;
                let mut stream = stream.expect("the monitoring port is open");
                stream.write_all(request.as_bytes()).await.expect("the server listens");
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.expect("the server answers");
                answer
            }
        };
        let (_, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
        serde_json::from_str(body).expect("JSON")
    }

    /// Where it keeps everything.
    pub fn dir(&self) -> &Path {
        self.scratch.path()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.down("KILL");
    }
}

/// On another machine only a process there can ask.
fn asked_there(node: &Node, port: u16, request: &str) -> String {
    let script = format!("exec 3<>/dev/tcp/{}/{port}; printf %s \"$0\" >&3; cat <&3", node.address);
    let output = node.command(Path::new("bash")).args(["-c", &script, request]).output();
    String::from_utf8_lossy(&output.expect("there is a bash").stdout).into_owned()
}

fn port_of(url: &str) -> u16 {
    url.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a URL with a port")
}

fn program(version: Version) -> PathBuf {
    let (variable, folder) = match version {
        Version::Current => ("BELLWETHER_TEST_NATS", "nats-current"),
        Version::Old => ("BELLWETHER_TEST_NATS_OLD", "nats-2.9"),
    };
    if let Some(program) = std::env::var_os(variable).map(PathBuf::from) {
        return program;
    }
    let path = std::env::var_os("PATH").filter(|_| version == Version::Current).unwrap_or_default();
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from).or(home);
    let places = std::env::split_paths(&path).chain(cache.map(|cache| cache.join("bellwether").join(folder)));
    let program = places.map(|dir| dir.join("nats-server")).find(|program| program.is_file());
    program
        .unwrap_or_else(|| panic!("no nats-server for {version:?}: run `cargo xtask test`, which sees to it"))
}
