//! An election as a node of the NATS profile `cluster`: roles, epochs, stepping down with a cooldown, hooks, errors, and health that
//! follows the election.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether::nats::{HealthChecker, Nats};
use bellwether::{
    CandidateId, Election, ElectionBuilder, Error, ErrorKind, HookError, Hooks, Leadership, Role,
    SystemClock, boot_now,
};
use bellwether_support::servers::nats::{Server, Version};

const TTL: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(30);

fn url(server: &Server) -> String {
    format!("{}?profile=cluster&create=yes", server.url())
}

fn node(server: &Server, id: &str) -> ElectionBuilder {
    let store = bellwether::open(&url(server)).unwrap();
    let builder = Election::builder("my-cluster").backend(store).id(id);
    builder.ttl(TTL).renew_interval(TTL / 3).cooldown(TTL)
}

#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn tell(&self, what: impl Into<String>) -> Result<(), HookError> {
        let what = what.into();
        self.0.lock().unwrap().push(what.clone());
        // An error is reported and holds nothing up.
        Err(format!("no {what}").into())
    }
}

impl Hooks for Told {
    async fn on_become_leader(&self, _: Leadership) -> Result<(), HookError> {
        self.tell("become")
    }

    async fn on_lose_leadership(&self, _: Leadership) -> Result<(), HookError> {
        self.tell("lose")
    }

    async fn on_leader_change(&self, leader: Option<CandidateId>) -> Result<(), HookError> {
        self.tell(format!("leader {}", leader.map(|id| id.to_string()).unwrap_or_default()))
    }
}

#[test]
fn the_defaults_are_those_of_go_cluster() {
    let store = bellwether::open("nats://127.0.0.1?profile=cluster").unwrap();
    let options = store.default_options();
    assert_eq!(options.timing.ttl, Duration::from_secs(10));
    assert_eq!(options.timing.renew, Some(Duration::from_secs(3)));
    assert_eq!(options.cooldown, Some(Duration::from_secs(10)));
    assert_eq!(
        [Role::Primary, Role::Passive, Role::Unknown].map(|role| role.to_string()),
        ["PRIMARY", "PASSIVE", "UNKNOWN"]
    );
}

#[tokio::test]
async fn cluster_node_and_servers_must_be_named() {
    let server = Server::start(Version::Current).await;
    assert!(matches!(node(&server, "").start().await, Err(Error::Name(_))));
    let store = bellwether::open(&url(&server)).unwrap();
    assert!(matches!(Election::builder("").backend(store).id("a").start().await, Err(Error::Name(_))));
    assert!(bellwether::open("nats://?profile=cluster").is_err());
    let refused = node(&server, "host.example").start().await.err().expect("refused");
    assert!(
        matches!(&refused, Error::Backend(error) if error.kind() == ErrorKind::InvalidInput),
        "{refused}"
    );
}

#[tokio::test]
async fn a_node_leads_steps_down_stays_away_and_tells_its_hooks_in_order() {
    let server = Server::start(Version::Current).await;
    let told = Told::default();
    let a = node(&server, "a").hooks(told.clone()).start().await.unwrap();
    let first = a.wait_for_leadership_within(LONG).await.unwrap();
    assert!(a.is_leader() && a.role().is_primary());
    let b = node(&server, "b").start().await.unwrap();
    b.wait_until(|status| status.leader.as_ref().is_some_and(|id| id.as_str() == "a")).await.unwrap();
    assert!(b.role().is_passive() && !b.is_leader());
    assert_eq!(b.epoch(), Some(first.epoch()));
    assert!(matches!(b.step_down().await, Err(Error::NotLeader)));

    let stepped_down = boot_now();
    a.step_down().await.unwrap();
    let second = b.wait_for_leadership_within(LONG).await.unwrap();
    assert_eq!(second.epoch().get(), first.epoch().get() + 1);
    assert!(matches!(a.step_down().await, Err(Error::InCooldown)));
    a.wait_until(|status| status.leader.as_ref().is_some_and(|id| id.as_str() == "b")).await.unwrap();
    a.stop().await.unwrap();
    assert_eq!(a.role(), Role::Unknown);
    assert!(matches!(a.step_down().await, Err(Error::NotStarted)));
    let told = told.0.lock().unwrap().clone();
    let turns: Vec<&str> =
        told.iter().map(String::as_str).filter(|what| !what.starts_with("leader")).collect();
    assert_eq!(turns, ["become", "lose"], "{told:?}");
    assert!(told.contains(&"leader b".to_owned()), "{told:?}");

    // The same id, started anew while the cooldown lasts, with nobody else there: it waits.
    b.stop().await.unwrap();
    let again = node(&server, "a").start().await.unwrap();
    let third = again.wait_for_leadership_within(LONG).await.unwrap();
    let away = boot_now().since(stepped_down);
    assert!(away >= TTL, "led again {away:?} after stepping down");
    assert!(third.epoch() > second.epoch());
    again.stop().await.unwrap();
}

#[tokio::test]
async fn health_follows_the_election_without_being_told() {
    let server = Server::start(Version::Current).await;
    let store = bellwether::open(&url(&server)).unwrap();
    let register = store.backend_as::<Nats>().unwrap().register();
    let health = register.health("my-cluster", "a", Arc::new(SystemClock)).unwrap();
    let builder = Election::builder("my-cluster").backend(store.clone()).id("a");
    let election = builder.ttl(TTL).renew_interval(TTL / 3).start().await.unwrap();
    bellwether::answer_for(&election, &health);
    health.start().await.unwrap();
    election.wait_for_leadership_within(LONG).await.unwrap();
    let config = bellwether::nats::Config::from_url(&url(&server)).unwrap();
    let other = HealthChecker::new(config, "my-cluster", "b", Arc::new(SystemClock)).unwrap();
    let answer = other.query_node("a", LONG).await.unwrap();
    assert_eq!((answer.role.as_str(), answer.leader.as_str()), ("PRIMARY", "a"));
    election.stop().await.unwrap();
    assert_eq!(other.query_node("a", LONG).await.unwrap().role, "UNKNOWN");
}
