//! How leaders end when somebody interferes, or when the server turns them away: with an event that says why, and never beside another.

use std::time::Duration;

use bellwether_core::{Epoch, Reason};
use bellwether_election::{Election, Events, What};
use bellwether_kubernetes::from_url;
use bellwether_support::servers::kubernetes::{ADMIN, LIMITED, Server};
use bellwether_support::{PATIENCE, clock, until};
use serde_json::{Value, json};

use crate::stage::{Namespace, rule};

const USER: &str = LIMITED[2];
const TTL: Duration = Duration::from_secs(2);

async fn leading(url: &str) -> (Election, Events) {
    let store = from_url(url, clock()).expect("a URL");
    let election =
        Election::builder("reports").backend(store).id("a").ttl(TTL).start().await.expect("a start");
    let events = election.events();
    election.wait_for_leadership().await.expect("a leadership");
    (election, events)
}

async fn next<T>(events: &mut Events, wanted: impl Fn(&What) -> Option<T>) -> T {
    let found = async {
        loop {
            let event = events.next().await.expect("the election goes on");
            if let Some(found) = wanted(&event.what) {
                return found;
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("the event comes")
}

async fn acquired(events: &mut Events) -> Epoch {
    let epoch = |what: &What| if let What::Acquired { epoch, .. } = what { Some(*epoch) } else { None };
    next(events, epoch).await
}

async fn lost(events: &mut Events) -> Reason {
    next(events, |what| if let What::Lost { reason, .. } = what { Some(*reason) } else { None }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_says_why_it_ended_when_somebody_interferes() {
    type Interference = fn(&mut Value);
    let renamed: Interference = |lease| lease["spec"]["holderIdentity"] = "somebody".into();
    let emptied: Interference = |lease| lease["spec"]["holderIdentity"] = Value::Null;
    for edit in [Some(renamed), Some(emptied), None] {
        let namespace = Namespace::new().await;
        let (election, mut events) = leading(&namespace.url_of(ADMIN)).await;
        match edit {
            Some(edit) => namespace.edit("reports", edit).await,
            None => namespace.delete("reports").await,
        }
        assert_eq!(lost(&mut events).await, Reason::Conflict);
        assert!(!election.is_leader());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_right_is_withdrawn_ends_and_says_so() {
    let namespace = Namespace::new().await;
    namespace.permit(USER, vec![rule(&["create", "get", "update", "watch"], &[])]).await;
    let (election, mut events) = leading(&namespace.url_of(USER)).await;
    namespace.forbid(USER).await;
    assert_eq!(lost(&mut events).await, Reason::Refused);
    assert!(!election.is_leader());
}

/// The server's own fairness has one seat for this user, which is taken, and rejects everything else that it sends: 429.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_the_server_is_too_busy_for_leads_until_its_deadline_and_later_again() {
    let namespace = Namespace::new().await;
    let user = LIMITED[3];
    namespace.permit(user, vec![rule(&["create", "get", "update", "watch"], &[])]).await;
    let (election, mut events) = leading(&namespace.url_of(user)).await;
    let first = election.epoch().expect("an epoch");
    let flow = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let level = json!({ "metadata": { "name": "none" }, "spec": { "type": "Limited", "limited": {
        "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0,
        "limitResponse": { "type": "Reject" },
    } } });
    let all = json!({ "resourceRules": [{
        "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true,
    }], "subjects": [{ "kind": "User", "user": { "name": user } }] });
    let schema = json!({ "metadata": { "name": "none" }, "spec": {
        "priorityLevelConfiguration": { "name": "none" }, "matchingPrecedence": 2, "rules": [all],
    } });
    namespace.server.api("POST", &format!("{flow}/prioritylevelconfigurations"), level).await;
    namespace.server.api("POST", &format!("{flow}/flowschemas"), schema).await;
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", namespace.name);
    let taken = until(|| async {
        let seat = namespace.server.half_sent(user, &leases).await;
        let answer = namespace.server.asked(user, "GET", &leases, None).await?;
        if answer.status == 429 { Ok(seat) } else { Err(format!("{answer:?}")) }
    })
    .await;
    assert_eq!(lost(&mut events).await, Reason::Deadline, "turned away is neither lost nor refused");
    let turned_away =
        namespace.server.requests().into_iter().filter(|one| one.user == user && one.status == 429);
    assert!(turned_away.count() > 0, "the server did turn it away");
    namespace.server.api("DELETE", &format!("{flow}/flowschemas/none"), Value::Null).await;
    drop(taken);
    assert!(acquired(&mut events).await > first);
}

/// The API of Leases is handed to a service that is not there: the server answers 503 to everybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_api_is_unavailable_leads_until_its_deadline_and_later_again() {
    let server = Server::start().await;
    let url = format!("kubernetes://default?kubeconfig={}", server.kubeconfig(ADMIN).display());
    let (election, mut events) = leading(&url).await;
    let first = election.epoch().expect("an epoch");
    let path = "/apis/apiregistration.k8s.io/v1/apiservices/v1.coordination.k8s.io";
    let mut registered = server.api("GET", path, Value::Null).await;
    let spec = registered["spec"].clone();
    registered["metadata"]["labels"] = json!({});
    registered["spec"]["service"] = json!({ "namespace": "default", "name": "nowhere" });
    registered["spec"]["insecureSkipTLSVerify"] = true.into();
    server.api("PUT", path, registered).await;
    assert_eq!(lost(&mut events).await, Reason::Deadline);
    let unavailable =
        server.requests().into_iter().filter(|one| one.resource == "leases" && one.status == 503);
    assert!(unavailable.count() > 0, "the server did say so");
    let mut registered = server.api("GET", path, Value::Null).await;
    registered["spec"] = spec;
    server.api("PUT", path, registered).await;
    assert!(acquired(&mut events).await > first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_goes_on_through_a_crash_of_the_server_that_is_shorter_than_its_lease() {
    let mut server = Server::start().await;
    let url = format!("kubernetes://default?kubeconfig={}", server.kubeconfig(ADMIN).display());
    let store = from_url(&url, clock()).expect("a URL");
    let ttl = 2 * PATIENCE;
    let election =
        Election::builder("reports").backend(store).id("a").ttl(ttl).renew_interval(Duration::from_secs(1));
    let election = election.start().await.expect("a start");
    let leadership = election.wait_for_leadership().await.expect("a leadership");
    server.down("KILL");
    server.up().await;
    let before = leadership.deadline();
    until(|| async {
        if leadership.deadline() > before { Ok(()) } else { Err("no renewal since the crash") }
    })
    .await;
    assert!(leadership.is_valid(), "one and the same leadership");
}
