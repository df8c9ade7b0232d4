//! A namespace of a test's own on the shared server.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bellwether_backend::Backend as _;
use bellwether_kubernetes::{Kubernetes, from_url};
use bellwether_support::servers::kubernetes::{ADMIN, Server};
use bellwether_support::{Actor, clock, until};
use serde_json::{Value, json};

/// Long enough for a busy machine.
pub(crate) const TTL: Duration = Duration::from_secs(2);

pub(crate) struct Namespace {
    pub(crate) server: &'static Server,
    pub(crate) name: String,
}

impl Namespace {
    pub(crate) async fn new() -> Namespace {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = Server::shared().await;
        let name = format!("test-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        server.namespace(&name).await;
        Namespace { server, name }
    }

    /// Where a candidate of this user finds it.
    pub(crate) fn url_of(&self, user: &str) -> String {
        format!("kubernetes://{}?kubeconfig={}", self.name, self.server.kubeconfig(user).display())
    }

    /// A connection of an administrator.
    pub(crate) fn connect(&self) -> Kubernetes {
        from_url(&self.url_of(ADMIN), clock()).expect("a URL")
    }

    /// A candidate in the election `reports`.
    pub(crate) fn actor(&self, id: &str) -> Actor<Kubernetes> {
        Actor::new(self.connect(), id, TTL)
    }

    /// The Lease as the server has it.
    pub(crate) async fn lease(&self, name: &str) -> Value {
        self.server.api("GET", &self.path(name), Value::Null).await
    }

    /// Changes the Lease as `kubectl edit` does: everything that is not mentioned stays.
    pub(crate) async fn edit(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut lease = self.lease(name).await;
        change(&mut lease);
        self.server.api("PUT", &self.path(name), lease).await;
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.server.api("DELETE", &self.path(name), Value::Null).await;
    }

    /// As another program would make one.
    pub(crate) async fn create(&self, name: &str, spec: Value) {
        let lease = json!({ "metadata": { "name": name }, "spec": spec });
        self.server.api("POST", self.path("").trim_end_matches('/'), lease).await;
    }

    pub(crate) fn path(&self, name: &str) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{name}", self.name)
    }

    /// What the shared server was asked for in this namespace, as words.
    pub(crate) fn requests(&self) -> Vec<String> {
        let here = self.server.requests().into_iter().filter(|request| request.namespace == self.name);
        here.map(|request| format!("{} {} {}", request.verb, request.resource, request.name)).collect()
    }
}

/// That the name says what it is.
pub(crate) fn is_kubernetes(backend: &Kubernetes) -> bool {
    backend.name() == "kubernetes"
}

/// Rules of a Role.
pub(crate) fn rule(verbs: &[&str], names: &[&str]) -> Value {
    json!({ "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs, "resourceNames": names })
}

impl Namespace {
    /// Lets this user do so much here, and no more.
    pub(crate) async fn permit(&self, user: &str, rules: Vec<Value>) {
        let path = |what: &str| format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/{what}", self.name);
        let role = json!({ "metadata": { "name": user }, "rules": rules });
        self.server.api("POST", &path("roles"), role).await;
        let binding = json!({
            "metadata": { "name": user },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        });
        self.server.api("POST", &path("rolebindings"), binding).await;
        // The server learns of new rights by a watch of its own.
        let review = json!({
            "spec": { "user": user, "resourceAttributes": {
                "namespace": self.name, "verb": "get", "group": "coordination.k8s.io", "resource": "leases", "name": "reports",
            } },
        });
        let expected = rules
            .iter()
            .any(|rule| rule["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("get"))));
        until(|| async {
            let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
            let allowed = self.server.api("POST", path, review.clone()).await["status"]["allowed"] == true;
            if allowed == expected { Ok(()) } else { Err("the server does not know the Role yet".to_owned()) }
        })
        .await;
    }

    /// Takes back what [`permit`](Namespace::permit) permitted.
    pub(crate) async fn forbid(&self, user: &str) {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings/{user}", self.name);
        self.server.api("DELETE", &path, Value::Null).await;
    }

    /// A candidate of this user in the election `reports`.
    pub(crate) fn actor_of(&self, user: &str, id: &str) -> Actor<Kubernetes> {
        Actor::new(from_url(&self.url_of(user), clock()).expect("a URL"), id, TTL)
    }
}
