//! Elections on NATS servers of its own: against the raw write in the same run, on one node and on three, ten thousand on one connection, and
//! beside another make. With the name of a measure as an argument, that one alone.

mod beside;
mod many;
mod timed;

use std::time::Duration;

use async_nats::{Client, HeaderMap, Message, Subscriber};
use bellwether::{Election, Store, boot_now};
use bellwether_benches::peers::ours::Asked;
use bellwether_benches::{Hops, RawHandover, Stamped, Stamping, Stamps, judged, median, percentile, report};
use bellwether_nats::from_url;
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{Actor, Child, clock, election, role};
use futures_util::StreamExt;
use futures_util::future::try_join_all;

const TTL: Duration = Duration::from_secs(2);
const WRITES: usize = 500;
const HANDOVERS: usize = 100;
const FAILOVERS: usize = 15;
const IDLE: Duration = Duration::from_secs(6);
const FOLLOWED: usize = 1_000;
const BUCKET: &str = "bellwether";

/// The measures, in their order. The first is taken while this process has not yet used any memory for others.
const ALL: [&str; 6] = ["many", "taken-over", "one-node", "three-nodes", "beside", "growth"];
/// As long as a record is.
const RECORD: &[u8] = &[b'x'; 300];
/// For a raw handover. On three nodes the server now and then tells its consumer nothing of a write; the pair starts over then.
const RAW_LIMIT: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() {
    if let Some(told) = role() {
        return lead_until_killed(&told).await;
    }
    if let Some(asked) = Asked::of_arguments() {
        return asked.run(|url| Store::from(from_url(url, clock()).expect("a URL"))).await;
    }
    let only: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for name in if only.is_empty() { ALL.map(str::to_owned).to_vec() } else { only } {
        measure(&name).await;
    }
}

async fn measure(name: &str) {
    match name {
        "many" => many::many().await,
        "taken-over" => many::taken_over().await,
        "one-node" => {
            let server = Server::start(Version::Current).await;
            let one = format!("{}?create=yes", server.url());
            writes(&server, &one).await;
            handovers("one node", &server, &one, Duration::from_millis(2)).await;
            failovers(&one).await;
            idle(&server, &one).await;
        }
        "three-nodes" => {
            let servers = Server::cluster(Version::Current, 3).await;
            let three = format!("{}?create=yes&replicas=3", Server::url_of_all(&servers));
            writes(&servers[0], &three).await;
            handovers("three nodes", &servers[0], &three, Duration::from_millis(8)).await;
        }
        "beside" => beside::beside().await,
        "growth" => beside::growth().await,
        other => panic!("there is no measure `{other}`; there are: {}", ALL.join(", ")),
    }
}

/// A process of its own: as many elections as it is told, with that ttl in seconds.
async fn lead_until_killed(told: &str) {
    let [url, ttl, count] = told.split(' ').collect::<Vec<_>>()[..] else { panic!("{told}") };
    let ttl = Duration::from_secs(ttl.parse().expect("seconds"));
    let all = stand(url, "a", ttl, count.parse().expect("a count")).await;
    leading(&all).await;
    println!("leading");
    std::future::pending().await
}

fn led_by_a_child(url: &str, ttl: Duration, count: usize) -> Child {
    let mut child = Child::start("bench", &format!("{url} {} {count}", ttl.as_secs()));
    child.wait_for("leading");
    child
}

/// Candidates in so many elections, on one store, without waiting for anything.
async fn stand(url: &str, id: &str, ttl: Duration, count: usize) -> Vec<Election> {
    stand_on(&Store::from(from_url(url, clock()).expect("a URL")), id, ttl, count).await
}

async fn stand_on(store: &Store, id: &str, ttl: Duration, count: usize) -> Vec<Election> {
    let start =
        |number| Election::builder(format!("job-{number}")).backend(store.clone()).id(id).ttl(ttl).start();
    try_join_all((0..count).map(start)).await.expect("a start")
}

async fn leading(all: &[Election]) {
    for election in all {
        election.wait_for_leadership().await.expect("a leadership");
    }
}

/// Until they know this leader, by a watch that is open.
async fn following(all: &[Election], leader: &str) {
    for election in all {
        let led =
            election.wait_until(|status| status.leader.as_ref().is_some_and(|id| id.as_str() == leader));
        led.await.expect("a leader");
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// A compare-and-set with nothing around it. Returns the new revision.
async fn raw(client: &Client, key: &str, revision: u64, payload: &'static [u8]) -> u64 {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Last-Subject-Sequence", revision.to_string().as_str());
    let subject = format!("$KV.{BUCKET}.{key}");
    let answer = client.request_with_headers(subject, headers, payload.into()).await.expect("an answer");
    let answer = String::from_utf8_lossy(&answer.payload).into_owned();
    let number = answer.split("\"seq\":").nth(1).and_then(|rest| rest.split([',', '}', ' ']).next());
    number.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

/// Claims and renewals against the raw write, in turn on the same server.
async fn writes(server: &Server, url: &str) {
    let actor = Actor::new(from_url(url, clock()).expect("a URL"), "a", TTL);
    let grant = actor.lead().await;
    actor.let_go(&grant).await;
    let client = server.admin().await;
    let mut revision = raw(&client, "raw", 0, RECORD).await;
    let (mut claims, mut renewals, mut raws) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..WRITES {
        let start = boot_now();
        let grant = actor.lead().await;
        let led = boot_now();
        let grant = actor.keep(&grant).await;
        let renewed = boot_now();
        actor.let_go(&grant).await;
        let before = boot_now();
        revision = raw(&client, "raw", revision, RECORD).await;
        raws.push(boot_now().since(before));
        claims.push(led.since(start));
        renewals.push(renewed.since(led));
    }
    let p99 = percentile(raws.clone(), 0.99);
    let raw = median(raws);
    report(
        &format!("raw compare-and-set, median of {WRITES}"),
        &format!("{raw:.1?}"),
        &format!("p99 {p99:.1?}"),
    );
    for (what, all) in [("renewal", renewals), ("claim after a release", claims)] {
        let p99 = percentile(all.clone(), 0.99);
        let took = median(all);
        let ratio = took.as_secs_f64() / raw.as_secs_f64();
        let note = format!("{ratio:.2} of the raw write; p99 {p99:.1?}");
        report(&format!("{what}, median of {WRITES}"), &format!("{took:.1?}"), &note);
    }
}

/// Two clients that hand a key to each other by the fewest messages: a write, of which a push consumer tells the other, and the
/// other's own write at the revision that it was told.
struct RawPair {
    key: String,
    leader: Client,
    follower: Client,
    told: Subscriber,
    revision: u64,
}

impl RawPair {
    /// On a key of its own, which nobody has written.
    async fn start(server: &Server, key: String) -> RawPair {
        let (leader, follower) = (server.admin().await, server.admin().await);
        let revision = raw(&leader, &key, 0, RECORD).await;
        let inbox = follower.new_inbox();
        let told = follower.subscribe(inbox.clone()).await.expect("a subscription");
        let consumer = format!(
            r#"{{"stream_name":"KV_{BUCKET}","config":{{"deliver_subject":"{inbox}","deliver_policy":"new",
            "ack_policy":"none","filter_subject":"$KV.{BUCKET}.{key}"}}}}"#
        );
        let create = format!("$JS.API.CONSUMER.CREATE.KV_{BUCKET}");
        let answer = follower.request(create, consumer.into()).await.expect("an answer");
        let answer = String::from_utf8_lossy(&answer.payload);
        assert!(!answer.contains("\"error\""), "{answer}");
        RawPair { key, leader, follower, told, revision }
    }

    async fn handover(&mut self) -> RawHandover {
        let start = boot_now();
        let taken = async {
            let message = self.told.next().await.expect("a message");
            let noticed = boot_now();
            let revision = raw(&self.follower, &self.key, revision_of(&message), RECORD).await;
            (RawHandover { release: noticed.since(start), claim: boot_now().since(noticed) }, revision)
        };
        let released = raw(&self.leader, &self.key, self.revision, RECORD);
        let (_, (handover, revision)) = tokio::join!(released, taken);
        // Of its own write.
        self.told.next().await.expect("a message");
        self.revision = revision;
        handover
    }
}

/// From the subject on which the message could be acknowledged.
fn revision_of(message: &Message) -> u64 {
    let tokens: Vec<&str> = message.reply.as_deref().expect("a place").split('.').collect();
    let place = if tokens.len() == 9 { 5 } else { 7 };
    tokens[place].parse().expect("a revision")
}

async fn handovers(place: &str, server: &Server, url: &str, limit: Duration) {
    let (mut hops, mut untold) = (Hops::default(), 0);
    let mut raw = RawPair::start(server, "handed-over".to_owned()).await;
    let mut leader = stamping(url, "c0").await;
    leading(std::slice::from_ref(&leader.election)).await;
    for round in 1..=HANDOVERS {
        let follower = stamping(url, &format!("c{round}")).await;
        following(std::slice::from_ref(&follower.election), &format!("c{}", round - 1)).await;
        hops.hand_over(&leader, &follower).await;
        // In the same rhythm.
        tokio::time::sleep(Duration::from_millis(100)).await;
        match tokio::time::timeout(RAW_LIMIT, raw.handover()).await {
            Ok(handover) => hops.note_raw(handover),
            Err(_) => {
                untold += 1;
                raw = RawPair::start(server, format!("handed-over-{round}")).await;
            }
        }
        leader = follower;
    }
    leader.election.stop().await.expect("a release");
    hops.report(&format!("{place}: "), limit);
    if untold > 0 {
        report(
            &format!("{place}: raw handovers that the server told nobody of"),
            &untold.to_string(),
            "left out",
        );
    }
}

/// A candidate of its own on a connection of its own, whose calls are noted.
async fn stamping(url: &str, id: &str) -> Stamping {
    let (inner, stamps) = (from_url(url, clock()).expect("a URL"), Stamps::default());
    let store = Store::from(Stamped { inner, stamps: stamps.clone() });
    let mut all = stand_on(&store, id, TTL, 1).await;
    Stamping { election: all.pop().expect("a candidate"), stamps }
}

async fn failovers(url: &str) {
    let mut took = Vec::new();
    for _ in 0..FAILOVERS {
        let mut child = led_by_a_child(url, TTL, 1);
        let all = stand(url, "b", TTL, 1).await;
        following(&all, "a").await;
        let killed = boot_now();
        child.kill();
        leading(&all).await;
        took.push(boot_now().since(killed));
        all[0].stop().await.expect("a release");
    }
    report(
        &format!("kill -9 to the next leadership, median of {FAILOVERS}"),
        &format!("{:.2?}", median(took.clone())),
        "",
    );
    let longest = percentile(took, 1.0);
    judged(
        &format!("kill -9 to the next leadership, longest (ttl {TTL:?})"),
        longest,
        TTL + Duration::from_millis(100),
    );
}

/// What followers send while nothing changes: the leader claims, and does not renew in this time.
async fn idle(server: &Server, url: &str) {
    let mut leader = Actor::new(from_url(url, clock()).expect("a URL"), "a", Duration::from_secs(60));
    for number in 0..FOLLOWED {
        leader.on = election(&format!("job-{number}"));
        let _ = leader.lead_within(Duration::from_secs(10)).await;
    }
    let followers = stand(url, "b", Duration::from_secs(60), FOLLOWED).await;
    following(&followers, "a").await;
    // What the beginning still asks for.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = server.messages_sent().await;
    tokio::time::sleep(IDLE).await;
    let sent = server.messages_sent().await - before;
    let verdict = if sent == 0 { "none: ok" } else { "none: MISSED" };
    report(&format!("messages sent by {FOLLOWED} followers in {IDLE:?}"), &sent.to_string(), verdict);
    try_join_all(followers.iter().map(Election::stop)).await.expect("ends");
}
