//! A namespace of a test's own on the shared server, with objects as a user would apply them, and candidates as a kubelet would
//! start them.

use std::path::{Path, PathBuf};
use std::process::Command;

use bellwether_support::servers::kubernetes::{ADMIN, Request, Server};
use bellwether_support::until;
use bellwether_tests::bellwether;
use serde_json::{Value, json};

/// Where the manifests and the chart are.
pub(crate) fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/kubernetes")
}

pub(crate) fn parse(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"))
}

/// Of every pod that a test starts a candidate for; nothing is sent there.
pub(crate) const POD_IP: &str = "10.1.2.3";

pub(crate) struct Place {
    pub(crate) server: &'static Server,
    pub(crate) namespace: String,
}

impl Place {
    /// Each test has another.
    pub(crate) async fn new(namespace: &str) -> Place {
        let server = Server::shared().await;
        server.namespace(namespace).await;
        Place { server, namespace: namespace.to_owned() }
    }

    /// The objects of this file, in this namespace instead of `jobs`.
    pub(crate) fn objects(&self, file: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(deploy().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        parse(&text.replace("namespace: jobs", &format!("namespace: {}", self.namespace)))
    }

    /// Creates the object as an administrator. The server refuses fields that it does not know.
    pub(crate) async fn apply(&self, object: &Value) {
        self.server.api("POST", &format!("{}?fieldValidation=Strict", path(object)), object.clone()).await;
    }

    /// Creates all objects of this file, and returns the last.
    pub(crate) async fn apply_file(&self, file: &str) -> Value {
        let mut objects = self.objects(file);
        for object in &objects {
            self.apply(object).await;
        }
        objects.pop().expect("a file holds an object")
    }

    /// The account that the pods of this workload run as, and a candidate of theirs: the command line and the variables of the
    /// container, with more flags, and with `work` in place of the program where it is given.
    pub(crate) async fn candidate(
        &self,
        workload: &Value,
        container: &Value,
        pod: &str,
        flags: &[&str],
        work: &[&str],
    ) -> Command {
        let account = text(&workload["spec"]["template"]["spec"]["serviceAccountName"]);
        let arguments = command_line(container);
        assert_eq!(arguments[0], "bellwether", "is process 1");
        let (own, program) = arguments.split_at(arguments.iter().position(|a| a == "--").expect("a program"));
        let program = if work.is_empty() { &program[1..] } else { &texts(work) };
        let mut command = Command::new(bellwether());
        command.args(&own[1..]).args(flags).arg("--").args(program);
        for variable in list(&container["env"]) {
            let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
                Some("metadata.name") => pod,
                Some("metadata.namespace") => &self.namespace,
                Some("status.podIP") => POD_IP,
                _ => text(&variable["value"]),
            };
            command.env(text(&variable["name"]), value);
        }
        command.env("KUBECONFIG", self.server.kubeconfig_of_account(&self.namespace, account).await);
        command
    }

    /// The Lease of this election.
    pub(crate) async fn lease(&self, name: &str) -> Value {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{name}", self.namespace);
        self.server.api("GET", &path, Value::Null).await
    }

    /// A pod of this name, which no kubelet runs.
    pub(crate) async fn pod(&self, name: &str) {
        let metadata = json!({ "name": name, "namespace": self.namespace });
        let containers = json!([{ "name": "a", "image": "example.com/a" }]);
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": { "containers": containers } });
        self.apply(&pod).await;
    }

    /// Until clients of this Service reach these addresses, and the pod is labelled as the leader's or not.
    pub(crate) async fn until_announced(
        &self,
        pod: &str,
        service: &str,
        addresses: &[&str],
        is_labelled: bool,
    ) {
        let here = |group: &str, kind: &str| format!("/{group}/namespaces/{}/{kind}", self.namespace);
        until(|| async {
            let slice = format!("{}/{service}", here("apis/discovery.k8s.io/v1", "endpointslices"));
            let slice = self.server.asked(ADMIN, "GET", &slice, None).await?.json();
            let found: Vec<&str> =
                list(&slice["endpoints"]).iter().map(|one| text(&one["addresses"][0])).collect();
            let pod = self.server.api("GET", &format!("{}/{pod}", here("api/v1", "pods")), Value::Null).await;
            let labels = pod["metadata"]["labels"].as_object();
            let labelled =
                labels.is_some_and(|all| all.keys().any(|key| key.starts_with("leader.bellwether/")));
            let is_so = found == addresses && slice["kind"] == "EndpointSlice" && labelled == is_labelled;
            if is_so { Ok(()) } else { Err(format!("{slice}\n{labels:?}")) }
        })
        .await;
    }

    /// What the server refused here, of these resources.
    pub(crate) fn denied(&self, resource: &str) -> Vec<Request> {
        let here = |request: &Request| request.namespace == self.namespace && request.resource == resource;
        self.server.requests().into_iter().filter(|r| here(r) && r.status == 403).collect()
    }

    /// Whether this account may do that.
    pub(crate) async fn may(
        &self,
        account: &str,
        verb: &str,
        (group, resource): (&str, &str),
        name: &str,
    ) -> bool {
        let question = json!({ "spec": {
            "user": format!("system:serviceaccount:{}:{account}", self.namespace),
            "resourceAttributes": {
                "namespace": self.namespace, "verb": verb, "group": group, "resource": resource, "name": name,
            },
        } });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        self.server.api("POST", path, question).await["status"]["allowed"] == true
    }
}

/// What the container is started with.
pub(crate) fn command_line(container: &Value) -> Vec<String> {
    let parts = list(&container["command"]).iter().chain(list(&container["args"]));
    parts.map(|part| text(part).to_owned()).collect()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The only container, or else the sidecar.
pub(crate) fn container(workload: &Value) -> &Value {
    let pod = &workload["spec"]["template"]["spec"];
    list(&pod["initContainers"]).first().unwrap_or(&pod["containers"][0])
}

fn texts(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

/// Where objects of this kind are.
fn path(object: &Value) -> String {
    let version = text(&object["apiVersion"]);
    let root = if version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{version}") };
    let kinds = text(&object["kind"]).to_lowercase() + "s";
    format!("{root}/namespaces/{}/{kinds}", text(&object["metadata"]["namespace"]))
}
