//! The same by the fewest requests: PUTs of a Lease at the version that was read, with nothing around them.

use bellwether::boot_now;
use bellwether_benches::RawHandover;
use bellwether_kubernetes::kube;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::WatchEvent;
use serde_json::{Value, json};

use crate::stage::Namespace;

/// A Lease, and a client with a connection of its own.
pub(crate) struct RawLease {
    client: kube::Client,
    path: String,
    object: Value,
}

impl RawLease {
    /// A new Lease that says as much as that of an election.
    pub(crate) async fn create(namespace: &Namespace<'_>, name: &str, like: &str) -> RawLease {
        let (client, leases) = (connect(namespace).await, leases(namespace));
        let mut object = ask(&client, "GET", &format!("{leases}/{like}"), &Value::Null).await;
        object["metadata"] = json!({ "name": name, "annotations": object["metadata"]["annotations"] });
        let object = ask(&client, "POST", &leases, &object).await;
        RawLease { client, path: format!("{leases}/{name}"), object }
    }

    pub(crate) async fn put(&mut self) {
        self.object = put(&self.client, &self.path, self.object.take()).await;
    }
}

/// Two clients that hand a Lease to each other: a PUT, of which a watch tells the other, and the other's own PUT at the version that
/// it was told.
pub(crate) struct RawPair {
    leader: RawLease,
    follower: kube::Client,
    told: BoxStream<'static, Value>,
}

impl RawPair {
    pub(crate) async fn start(namespace: &Namespace<'_>, like: &str) -> RawPair {
        let leader = RawLease::create(namespace, "raw", like).await;
        let follower = connect(namespace).await;
        let version = leader.object["metadata"]["resourceVersion"].as_str().expect("a version");
        let query = format!("watch=true&fieldSelector=metadata.name%3Draw&resourceVersion={version}");
        let watch = request("GET", &format!("{}?{query}", leases(namespace)), &Value::Null);
        let events = follower.request_events::<Value>(watch).await.expect("a watch");
        let told = events.map(|event| match event.expect("an event") {
            WatchEvent::Modified(object) => object,
            other => panic!("{other:?}"),
        });
        // As the follower of an election, which has looked before: the connection for its PUT is open.
        ask(&follower, "GET", &leader.path, &Value::Null).await;
        RawPair { leader, follower, told: Box::pin(told) }
    }

    pub(crate) async fn handover(&mut self) -> RawHandover {
        let path = self.leader.path.clone();
        let start = boot_now();
        let taken = async {
            let object = self.told.next().await.expect("a change");
            let noticed = boot_now();
            let object = put(&self.follower, &path, object).await;
            (RawHandover { release: noticed.since(start), claim: boot_now().since(noticed) }, object)
        };
        let ((), (handover, object)) = tokio::join!(self.leader.put(), taken);
        // Of its own write.
        self.told.next().await.expect("a change");
        self.leader.object = object;
        handover
    }
}

async fn connect(namespace: &Namespace<'_>) -> kube::Client {
    let file = Kubeconfig::read_from(&namespace.kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    kube::Client::try_from(config.expect("a cluster")).expect("a client")
}

fn leases(namespace: &Namespace<'_>) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", namespace.name)
}

/// Replaces it at its version; the server writes nothing where nothing is changed.
async fn put(client: &kube::Client, path: &str, mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    metadata.remove("managedFields");
    metadata["annotations"]["raw"] = boot_now().as_nanos().to_string().into();
    ask(client, "PUT", path, &object).await
}

async fn ask(client: &kube::Client, method: &str, path: &str, body: &Value) -> Value {
    client.request(request(method, path, body)).await.expect("an answer")
}

fn request(method: &str, path: &str, body: &Value) -> Request<Vec<u8>> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    request.body(body).expect("a request")
}
