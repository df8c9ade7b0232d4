//! What the cluster is told beyond the Lease: which pod leads, and at which address.

use bellwether_backend::{Backend as _, Past};
use bellwether_core::{Clock as _, Grant};
use bellwether_deadman::SystemClock;
use bellwether_election::Election;
use bellwether_kubernetes::{Kubernetes, from_url};
use bellwether_support::servers::kubernetes::{ADMIN, LIMITED};
use bellwether_support::{Actor, clock, until};
use serde_json::{Value, json};

use crate::stage::{Namespace, TTL, rule};

const LABEL: &str = "leader.bellwether/reports";
const ROUNDS: u8 = 20;

impl Namespace {
    fn url_with(&self, options: &str) -> String {
        format!("{}&{options}", self.url_of(ADMIN))
    }

    fn actor_with(&self, id: &str, options: &str) -> Actor<Kubernetes> {
        Actor::new(from_url(&self.url_with(options), clock()).expect("a URL"), id, TTL)
    }

    /// A pod that no kubelet runs.
    async fn pod(&self, name: &str, labels: Value) {
        let pod = json!({
            "metadata": { "name": name, "labels": labels },
            "spec": { "containers": [{ "name": "a", "image": "example.com/a" }] },
        });
        self.server.api("POST", &format!("/api/v1/namespaces/{}/pods", self.name), pod).await;
    }

    async fn label(&self, pod: &str) -> Value {
        let path = format!("/api/v1/namespaces/{}/pods/{pod}", self.name);
        self.server.api("GET", &path, Value::Null).await["metadata"]["labels"][LABEL].take()
    }

    async fn until_label(&self, pod: &str, expected: Value) {
        until(|| async {
            let label = self.label(pod).await;
            if label == expected { Ok(()) } else { Err(format!("{pod} has the label {label}")) }
        })
        .await;
    }

    fn slices(&self) -> String {
        format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", self.name)
    }

    async fn slice(&self, service: &str) -> Value {
        self.server.api("GET", &format!("{}/{service}", self.slices()), Value::Null).await
    }

    async fn until_address(&self, expected: &[&str]) -> Value {
        until(|| async {
            let path = format!("{}/reports", self.slices());
            let answer = self.server.asked(ADMIN, "GET", &path, None).await?;
            let slice = answer.json();
            let has = addresses(&slice);
            if answer.status == 200 && has == expected { Ok(slice) } else { Err(format!("{slice}")) }
        })
        .await
    }
}

fn addresses(slice: &Value) -> Vec<&str> {
    let endpoints = slice["endpoints"].as_array().map_or(&[][..], Vec::as_slice);
    endpoints.iter().filter_map(|endpoint| endpoint["addresses"][0].as_str()).collect()
}

/// As the driver tells of this leadership: when it has begun, and when it has ended.
async fn tell(actor: &Actor<Kubernetes>, grant: &Grant, has_ended: bool) {
    let now = SystemClock.wall();
    let past = Past {
        epoch: grant.epoch,
        id: actor.bid.who.id.clone(),
        incarnation: Some(actor.bid.who.incarnation),
        since: now,
        until: has_ended.then_some(now),
        ended: has_ended.then(|| "released".to_owned()),
    };
    actor.backend.remember(&actor.on, &past).await.expect("history is written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_s_pod_has_the_label_and_its_dead_predecessor_s_has_not() {
    let namespace = Namespace::new().await;
    for pod in ["a", "b"] {
        namespace.pod(pod, json!({ "app": "reports" })).await;
    }
    // Dies with its label on.
    let first = namespace.actor_with("first", "label=yes&pod=a");
    let grant = first.lead().await;
    tell(&first, &grant, false).await;
    namespace.until_label("a", "true".into()).await;

    let store = from_url(&namespace.url_with("label=yes&pod=b"), clock()).expect("a URL");
    let second =
        Election::builder("reports").backend(store).id("second").ttl(TTL).start().await.expect("a start");
    second.wait_for_leadership().await.expect("it takes over");
    namespace.until_label("b", "true".into()).await;
    assert_eq!(namespace.label("a").await, Value::Null, "never both");
    second.stop().await.expect("it stops");
    assert_eq!(namespace.label("b").await, Value::Null, "gone when the process may end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_that_an_earlier_start_of_the_pod_left_is_removed_before_the_first_claim() {
    let namespace = Namespace::new().await;
    namespace.pod("a", json!({ LABEL: "true" })).await;
    let _held = namespace.actor("leader").lead().await;
    let follower = namespace.actor_with("follower", "label=yes&pod=a");
    let _ = follower.denied().await;
    namespace.until_label("a", Value::Null).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_not_publish_the_address_leads_and_labels_its_pod_all_the_same() {
    let namespace = Namespace::new().await;
    let user = LIMITED[0];
    let pods = json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["patch"] });
    namespace.permit(user, vec![rule(&["create", "get", "update", "watch"], &[]), pods]).await;
    namespace.pod("a", json!({})).await;
    let options = "label=yes&pod=a&service=reports&port=80&address=10.0.0.1";
    let url = format!("{}&{options}", namespace.url_of(user));
    let actor = Actor::new(from_url(&url, clock()).expect("a URL"), "a", TTL);
    let grant = actor.lead().await;
    tell(&actor, &grant, false).await;
    namespace.until_label("a", "true".into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_s_address_is_published_and_withdrawn() {
    let namespace = Namespace::new().await;
    let url = namespace.url_with("service=reports&port=http:8080,admin:9090&address=10.1.2.3");
    let store = from_url(&url, clock()).expect("a URL");
    let election =
        Election::builder("reports").backend(store).id("a").ttl(TTL).start().await.expect("a start");
    let leadership = election.wait_for_leadership().await.expect("a leadership");
    let slice = namespace.until_address(&["10.1.2.3"]).await;
    let metadata = &slice["metadata"];
    assert_eq!(metadata["annotations"]["bellwether/epoch"], leadership.epoch().to_string());
    assert_eq!(metadata["annotations"]["bellwether/leader"], "a");
    assert_eq!(metadata["labels"]["kubernetes.io/service-name"], "reports");
    assert_eq!(slice["addressType"], "IPv4");
    let ports: Vec<_> =
        slice["ports"].as_array().expect("ports").iter().map(|port| (&port["name"], &port["port"])).collect();
    assert_eq!(ports, [(&json!("http"), &json!(8080)), (&json!("admin"), &json!(9090))]);
    election.stop().await.expect("it stops");
    assert!(addresses(&namespace.slice("reports").await).is_empty(), "gone when the process may end");
}

/// Both write at once, and the earlier of the two leaderships sometimes last: by compare-and-set and the epoch it never stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_of_an_old_leader_never_replaces_that_of_its_successor() {
    let namespace = Namespace::new().await;
    let candidate = |id: &str, address: &str| {
        namespace.actor_with(id, &format!("service=reports&port=80&address={address}"))
    };
    let (old, new) = (candidate("old", "10.0.0.1"), candidate("new", "10.0.0.2"));
    for round in 0..ROUNDS {
        let earlier = old.lead().await;
        old.let_go(&earlier).await;
        let later = new.lead().await;
        assert!(later.epoch > earlier.epoch);
        // One is ahead of the other by another part of a write every time.
        let lag = std::time::Duration::from_micros(u64::from(round) * 300);
        tokio::join!(tell(&old, &earlier, false), async {
            tokio::time::sleep(lag).await;
            tell(&new, &later, false).await;
        });
        // Told in their order: when the end has been told, so has the beginning.
        tell(&old, &earlier, true).await;
        let slice = namespace.until_address(&["10.0.0.2"]).await;
        assert_eq!(slice["metadata"]["annotations"]["bellwether/epoch"], later.epoch.to_string());
        // A process that wakes up now and goes on where it was.
        tell(&old, &earlier, false).await;
        tell(&old, &earlier, true).await;
        assert_eq!(namespace.slice("reports").await, slice, "round {round}: nothing was written");
        tell(&new, &later, true).await;
        assert!(addresses(&namespace.slice("reports").await).is_empty());
        new.let_go(&later).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_slice_of_somebody_else_is_left_as_it_is() {
    let namespace = Namespace::new().await;
    let theirs = json!({
        "metadata": { "name": "reports", "labels": { "kubernetes.io/service-name": "reports" } },
        "addressType": "IPv4", "endpoints": [{ "addresses": ["10.9.9.9"] }], "ports": [],
    });
    namespace.server.api("POST", &namespace.slices(), theirs).await;
    let before = namespace.slice("reports").await;
    let actor = namespace.actor_with("a", "service=reports&port=80&address=10.0.0.1");
    let grant = actor.lead().await;
    tell(&actor, &grant, false).await;
    tell(&actor, &grant, true).await;
    assert_eq!(namespace.slice("reports").await, before);
    actor.keep(&grant).await;
}
