//! A namespace of the server for each measure, and candidates in it.

use std::path::PathBuf;
use std::time::Duration;

use bellwether::{Election, Store};
use bellwether_benches::peers::version;
use bellwether_benches::{Stamped, Stamping, Stamps};
use bellwether_kubernetes::from_url;
use bellwether_support::servers::kubernetes::{ADMIN, ClientGo, Server, Timing};
use bellwether_support::servers::peers::client_go;
use bellwether_support::{Child, clock};
use futures_util::future::try_join_all;
use serde_json::Value;

/// For what a follower does after it knows the leader: it opens its watch.
const WATCH_OPENS: Duration = Duration::from_millis(200);

/// Made at the start, while the server has nothing else to do.
const NAMESPACES: [&str; 11] = [
    "beside",
    "growth",
    "quiet",
    "writes",
    "one-follower",
    "many-followers",
    "failovers",
    "many",
    "client-go-many",
    "is-leader",
    "client-go-requests",
];

pub(crate) struct Namespace<'a> {
    pub(crate) server: &'a Server,
    pub(crate) name: &'static str,
    pub(crate) kubeconfig: PathBuf,
}

pub(crate) async fn server() -> Server {
    let server = Server::start().await;
    for name in NAMESPACES {
        server.namespace(name).await;
    }
    server
}

impl Namespace<'_> {
    /// One of [`NAMESPACES`].
    pub(crate) fn of<'a>(server: &'a Server, name: &'static str) -> Namespace<'a> {
        assert!(NAMESPACES.contains(&name), "{name} was not made");
        Namespace { server, name, kubeconfig: server.kubeconfig(ADMIN) }
    }

    pub(crate) fn url(&self) -> String {
        format!("kubernetes://{}?kubeconfig={}", self.name, self.kubeconfig.display())
    }

    /// What users asked for here so far, by the server's own log.
    pub(crate) fn requests(&self) -> usize {
        self.server.requests().iter().filter(|request| request.namespace == self.name).count()
    }

    /// PUTs that others were before, so far.
    pub(crate) fn conflicts(&self) -> usize {
        let all = self.server.requests();
        all.iter().filter(|request| request.namespace == self.name && request.status == 409).count()
    }

    /// Figures of client-go in this namespace, with the timing that its documentation recommends.
    pub(crate) fn client_go(&self, measure: &str, flags: &[&str]) -> Value {
        let flags = [&["--namespace", self.name, "--name", "client-go"], flags].concat();
        ClientGo::bench(&self.kubeconfig, measure, Timing::RECOMMENDED, &flags)
    }
}

/// Client-go with its version and how it is set, as rows name it.
pub(crate) fn client_go_name() -> String {
    format!("{}, times of its documentation (15 s, 10 s, 2 s)", version(&client_go()))
}

/// The times of a measure of client-go.
pub(crate) fn times(measured: &Value) -> Vec<Duration> {
    let all = measured["nanos"].as_array().expect("a list of times");
    all.iter().map(|nanos| Duration::from_nanos(nanos.as_u64().expect("nanoseconds"))).collect()
}

pub(crate) fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

/// A candidate in so many elections, on one store, without waiting for anything.
pub(crate) async fn stand(url: &str, id: &str, ttl: Duration, count: usize) -> Vec<Election> {
    stand_on(&Store::from(from_url(url, clock()).expect("a URL")), id, ttl, count).await
}

/// A candidate of its own in the election `job-0`, on a connection of its own.
pub(crate) async fn stand_alone(url: &str, id: &str, ttl: Duration) -> Election {
    stand(url, id, ttl, 1).await.pop().expect("a candidate")
}

/// As [`stand_alone`], with calls that are noted.
pub(crate) async fn stamping(url: &str, id: &str, ttl: Duration) -> Stamping {
    let (inner, stamps) = (from_url(url, clock()).expect("a URL"), Stamps::default());
    let store = Store::from(Stamped { inner, stamps: stamps.clone() });
    let election = stand_on(&store, id, ttl, 1).await.pop().expect("a candidate");
    Stamping { election, stamps }
}

async fn stand_on(store: &Store, id: &str, ttl: Duration, count: usize) -> Vec<Election> {
    let start =
        |number| Election::builder(format!("job-{number}")).backend(store.clone()).id(id).ttl(ttl).start();
    try_join_all((0..count).map(start)).await.expect("a start")
}

pub(crate) async fn leading(all: &[Election]) {
    for election in all {
        election.wait_for_leadership().await.expect("a leadership");
    }
}

/// Until they know this leader, by a watch that is open.
pub(crate) async fn following<'a>(all: impl IntoIterator<Item = &'a Election>, leader: &str) {
    for election in all {
        let led =
            election.wait_until(|status| status.leader.as_ref().is_some_and(|id| id.as_str() == leader));
        led.await.expect("a leader");
    }
    tokio::time::sleep(WATCH_OPENS).await;
}

/// A process of its own that leads so many elections as `a`.
pub(crate) fn led_by_a_child(url: &str, ttl: Duration, count: usize) -> Child {
    let mut child = Child::start("bench", &format!("{url} {} {count}", ttl.as_secs()));
    child.wait_for("leading");
    child
}

/// In that process.
pub(crate) async fn lead_until_killed(told: &str) {
    let [url, ttl, count] = told.split(' ').collect::<Vec<_>>()[..] else { panic!("{told}") };
    let ttl = Duration::from_secs(ttl.parse().expect("seconds"));
    let all = stand(url, "a", ttl, count.parse().expect("a count")).await;
    leading(&all).await;
    println!("leading");
    std::future::pending().await
}
