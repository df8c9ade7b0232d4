//! Peers by the API of Kubernetes, on a real API server. There are no controllers: pods and slices are as a test writes them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use bellwether_cluster::{
    KubernetesAccess, KubernetesConfig, KubernetesResolver, PeerPort, PeerSource, ResolveError, Resolver,
};
use bellwether_support::servers::kubernetes::{ADMIN, LIMITED, Server};
use bellwether_support::{proxy_to, until};
use serde_json::{Value, json};

struct Namespace {
    server: &'static Server,
    name: String,
}

impl Namespace {
    async fn new() -> Namespace {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = Server::shared().await;
        let name = format!("peers-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        server.namespace(&name).await;
        Namespace { server, name }
    }

    fn resolver(&self, peers: PeerSource, port: PeerPort, expected: usize) -> KubernetesResolver {
        self.resolver_by(self.server.kubeconfig(ADMIN), peers, port, expected)
    }

    fn resolver_by(
        &self,
        file: PathBuf,
        peers: PeerSource,
        port: PeerPort,
        expected: usize,
    ) -> KubernetesResolver {
        let (access, namespace) = (KubernetesAccess::Kubeconfig(file), Some(self.name.clone()));
        KubernetesResolver::new(KubernetesConfig { access, namespace, peers, port, expected }).unwrap()
    }

    async fn slice(&self, name: &str, service: &str, endpoints: Value) {
        let slice = json!({
            "metadata": { "name": name, "labels": { "kubernetes.io/service-name": service } },
            "addressType": "IPv4",
            "ports": [{ "name": "metrics", "port": 9090 }, { "name": "raft", "port": 7000 }],
            "endpoints": endpoints,
        });
        let path = format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", self.name);
        self.server.api("POST", &path, slice).await;
    }

    async fn delete_slice(&self, name: &str) {
        let path = format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices/{name}", self.name);
        self.server.api("DELETE", &path, Value::Null).await;
    }

    /// A pod; `ip` is what a kubelet would have said.
    async fn pod(&self, name: &str, mut spec: Value, ip: Option<&str>) {
        spec["containers"] = json!([
            { "name": "side", "image": "side" },
            { "name": "app", "image": "app", "ports": [{ "name": "raft", "containerPort": 7000 }] },
        ]);
        let pod = json!({ "metadata": { "name": name, "labels": { "app": "db" } }, "spec": spec });
        let path = format!("/api/v1/namespaces/{}/pods", self.name);
        let mut pod = self.server.api("POST", &path, pod).await;
        if let Some(ip) = ip {
            pod["status"] = json!({ "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }] });
            self.server.api("PUT", &format!("{path}/{name}/status"), pod).await;
        }
    }
}

fn endpoint(pod: &str, ip: &str, ready: bool, hostname: Option<&str>) -> Value {
    let mut endpoint = json!({
        "addresses": [ip],
        "conditions": { "ready": ready },
        "targetRef": { "kind": "Pod", "name": pod },
    });
    if let Some(hostname) = hostname {
        endpoint["hostname"] = json!(hostname);
    }
    endpoint
}

fn service(name: &str) -> PeerSource {
    PeerSource::Service(name.to_owned())
}

fn selector(text: &str) -> PeerSource {
    PeerSource::Pods(text.to_owned())
}

fn raft() -> PeerPort {
    PeerPort::Name("raft".to_owned())
}

async fn found(resolver: &KubernetesResolver) -> Vec<String> {
    resolver.resolve().await.unwrap().iter().map(ToString::to_string).collect()
}

async fn fails(resolver: &KubernetesResolver, is_permanent: bool, parts: &[&str]) -> ResolveError {
    let error = resolver.resolve().await.unwrap_err();
    assert_eq!(error.is_permanent(), is_permanent, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part:?} is missing: {error}");
    }
    error
}

/// The pods of a StatefulSet have host names; the DNS names made of these outlive a change of address.
#[tokio::test]
async fn endpoints_of_a_service_count_ready_or_not() {
    let namespace = Namespace::new().await;
    let resolver = namespace.resolver(service("db"), raft(), 3);
    let place = format!("the Service db in namespace {}", namespace.name);
    fails(&resolver, false, &[&place, "0 of 3 expected peers"]).await;
    let first = json!([endpoint("db-0", "10.1.0.1", true, Some("db-0"))]);
    namespace.slice("db-a", "db", first).await;
    fails(&resolver, false, &["1 of 3 expected peers (db-0)"]).await;
    let others = json!([
        endpoint("db-2", "10.1.0.3", false, Some("db-2")),
        endpoint("db-1", "10.1.0.2", false, None),
        { "addresses": ["10.1.0.9"], "conditions": { "ready": true } },
    ]);
    namespace.slice("db-b", "db", others).await;
    namespace.slice("other", "other", json!([endpoint("x", "10.1.0.8", true, Some("x"))])).await;
    let name = &namespace.name;
    assert_eq!(
        found(&resolver).await,
        [
            format!("db-0=db-0.db.{name}.svc:7000"),
            "db-1=10.1.0.2:7000".to_owned(),
            format!("db-2=db-2.db.{name}.svc:7000")
        ]
    );
    // Each call lists again.
    namespace.delete_slice("db-a").await;
    fails(&resolver, false, &["2 of 3 expected peers (db-1, db-2)"]).await;
}

#[tokio::test]
async fn pods_are_found_by_their_labels() {
    let namespace = Namespace::new().await;
    let resolver = namespace.resolver(selector("app in (db, cache)"), raft(), 3);
    namespace.pod("db-0", json!({ "hostname": "db-0", "subdomain": "db" }), None).await;
    namespace.pod("db-1", json!({}), Some("10.1.0.2")).await;
    namespace.pod("db-2", json!({}), None).await;
    fails(&resolver, false, &["the selector app in (db, cache)", "2 of 3 expected peers (db-0, db-1)"]).await;
    namespace.pod("db-3", json!({}), Some("fd00::4")).await;
    let name = &namespace.name;
    let expected = [
        format!("db-0=db-0.db.{name}.svc:7000"),
        "db-1=10.1.0.2:7000".to_owned(),
        "db-3=[fd00::4]:7000".to_owned(),
    ];
    assert_eq!(found(&resolver).await, expected);
    let by_number = namespace.resolver(selector("app=db"), PeerPort::Number(9), 3);
    assert!(found(&by_number).await.iter().all(|peer| peer.ends_with(":9")));
}

#[tokio::test]
async fn a_port_that_nobody_has_is_named() {
    let namespace = Namespace::new().await;
    namespace.pod("db-0", json!({}), Some("10.1.0.1")).await;
    namespace.slice("db-a", "db", json!([endpoint("db-0", "10.1.0.1", true, None)])).await;
    let port = || PeerPort::Name("rafft".to_owned());
    let resolver = namespace.resolver(service("db"), port(), 1);
    fails(&resolver, true, &["the Service db has no port named rafft"]).await;
    let resolver = namespace.resolver(selector("app=db"), port(), 1);
    fails(&resolver, true, &["no container of the pod db-0 has a port named rafft"]).await;
}

#[tokio::test]
async fn a_missing_right_is_named_by_verb_and_resource_until_it_is_granted() {
    let namespace = Namespace::new().await;
    let user = LIMITED[0];
    let resolver = |peers| namespace.resolver_by(namespace.server.kubeconfig(user), peers, raft(), 1);
    let (slices, pods) = (resolver(service("db")), resolver(selector("app=db")));
    let here = format!("in namespace {}", namespace.name);
    fails(&slices, true, &["cannot list endpointslices", &here, "grant that verb", "403"]).await;
    fails(&pods, true, &["cannot list pods", &here, "grant that verb", "403"]).await;
    let path =
        |what: &str| format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/{what}", namespace.name);
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["list"] }]);
    let role = json!({ "metadata": { "name": user }, "rules": rules });
    namespace.server.api("POST", &path("roles"), role).await;
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": { "name": user },
        "roleRef": { "apiGroup": group, "kind": "Role", "name": user },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": user }],
    });
    namespace.server.api("POST", &path("rolebindings"), binding).await;
    namespace.pod("db-0", json!({}), Some("10.1.0.1")).await;
    // The server hears of a new right by a watch of its own.
    let peers = until(|| pods.resolve()).await;
    assert_eq!(peers[0].to_string(), "db-0=10.1.0.1:7000");
    fails(&slices, true, &["cannot list endpointslices"]).await;
}

#[tokio::test]
async fn a_selector_that_makes_no_sense_is_refused() {
    let namespace = Namespace::new().await;
    let resolver = namespace.resolver(selector("app=(("), raft(), 1);
    fails(&resolver, true, &["check the label selector", "400"]).await;
}

#[tokio::test]
async fn a_credential_that_is_replaced_on_disk_is_found() {
    let namespace = Namespace::new().await;
    namespace.pod("db-0", json!({}), Some("10.1.0.1")).await;
    let file = namespace.server.kubeconfig(ADMIN);
    let good = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, good.replace("token-of-admin", "expired")).unwrap();
    let resolver = namespace.resolver_by(file.clone(), selector("app=db"), raft(), 1);
    fails(&resolver, true, &["does not accept who we are", "401"]).await;
    std::fs::write(&file, good).unwrap();
    assert_eq!(found(&resolver).await.len(), 1);
    std::fs::remove_file(&file).unwrap();
    // The client at hand still works.
    assert_eq!(found(&resolver).await.len(), 1);
}

#[tokio::test]
async fn a_server_that_is_cut_off_may_come_back() {
    let namespace = Namespace::new().await;
    namespace.pod("db-0", json!({}), Some("10.1.0.1")).await;
    let proxy = proxy_to(namespace.server.port()).await;
    let file = namespace.server.kubeconfig_through(proxy.port(), ADMIN);
    let resolver = namespace.resolver_by(file, selector("app=db"), raft(), 1);
    assert_eq!(found(&resolver).await.len(), 1);
    proxy.cut();
    fails(&resolver, false, &["cannot list pods", "at the moment"]).await;
    proxy.heal();
    assert_eq!(found(&resolver).await.len(), 1);
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_in_bounded_time() {
    let namespace = Namespace::new().await;
    let proxy = proxy_to(namespace.server.port()).await;
    let file = namespace.server.kubeconfig_through(proxy.port(), ADMIN);
    let resolver = namespace.resolver_by(file, selector("app=db"), raft(), 1);
    fails(&resolver, false, &["0 of 1 expected peers"]).await;
    proxy.silence();
    fails(&resolver, false, &["did not answer within 5 s"]).await;
}
