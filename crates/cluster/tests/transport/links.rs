//! The connections that a node keeps to its peers.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_cluster::transport::{CallError, HostLookup, Links, Refused};
use bellwether_cluster::{Lane, Member, NodeId, PeerLink};
use bellwether_deadman::boot_now;
use futures_util::future::{BoxFuture, join_all};

use crate::support::{CLUSTER, NODE, PATIENCE, dialler, name, serve, soon};

fn member() -> Member {
    Member { node: NODE, name: name("a"), address: "a.example:7400".to_owned() }
}

fn links(address: impl Fn(&Member) -> String + Send + Sync + 'static) -> Links {
    Links::new(dialler(), CLUSTER, (NodeId::from_random(0xb), name("b")), address)
}

async fn ask(links: &Links, lane: Lane, text: &str) -> Result<String, CallError> {
    let answer = soon(links.request(&member(), lane, text.into(), PATIENCE)).await?;
    Ok(String::from_utf8(answer).unwrap())
}

/// Asks until it works: a member that comes back is found within the longest pause.
async fn until_reached(links: &Links) {
    soon(async {
        while ask(links, Lane::Heartbeat, "x").await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn each_lane_has_one_connection_however_many_calls_there_are() {
    let served = serve().await;
    let address = served.address.clone();
    let links = links(move |_| address.clone());
    let calls = (0..20).flat_map(|_| [Lane::Heartbeat, Lane::Replication, Lane::Snapshot]);
    let answers = join_all(calls.map(|lane| ask(&links, lane, "purpose"))).await;
    for (answer, lane) in answers.iter().zip(["Heartbeat", "Replication", "Snapshot"].iter().cycle()) {
        assert_eq!(*answer, Ok(format!("Raft({lane})")));
    }
    assert_eq!(served.node.greeted.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_member_that_is_down_is_asked_again_after_a_pause_and_found_when_it_is_back() {
    let served = serve().await;
    let port = served.address.clone();
    let links = links(move |_| port.clone());
    assert_eq!(ask(&links, Lane::Heartbeat, "x").await, Ok("x".to_owned()));
    let address = served.address.clone();
    soon(served.listener.shutdown()).await;
    let mut failures = 0;
    let begun = boot_now();
    while boot_now().since(begun) < Duration::from_millis(300) {
        let error = ask(&links, Lane::Heartbeat, "x").await.unwrap_err();
        // The first may have found the connection still open.
        assert!(failures == 0 || error.is_certainly_not_sent(), "{error:?}");
        failures += 1;
    }
    // Those in a pause fail at once, so there are many.
    assert!(failures > 50, "{failures}");
    let host = Arc::clone(&served.node);
    let _again = bellwether_cluster::transport::Listener::bind(
        &address,
        bellwether_cluster::transport::Security::LoopbackOnly,
        host,
    )
    .await
    .unwrap();
    until_reached(&links).await;
}

#[tokio::test]
async fn a_member_that_is_down_is_not_dialled_more_often_than_the_pauses_allow() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    // Nobody listens on port 1.
    let links = links(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        "127.0.0.1:1".to_owned()
    });
    let begun = boot_now();
    while boot_now().since(begun) < Duration::from_millis(500) {
        assert!(ask(&links, Lane::Heartbeat, "x").await.unwrap_err().is_certainly_not_sent());
    }
    // At 0, 20, 60, 140 and 300 ms.
    let dials = asked.load(Ordering::SeqCst);
    assert!((2..=5).contains(&dials), "{dials}");
}

#[tokio::test]
async fn a_node_that_took_the_address_of_a_member_gets_none_of_its_messages() {
    let served = serve().await;
    let address = served.address.clone();
    let links = links(move |_| address.clone());
    let replaced = Member { node: NodeId::from_random(0xdead), ..member() };
    let refused = soon(links.request(&replaced, Lane::Heartbeat, b"x".to_vec(), PATIENCE)).await;
    assert_eq!(refused, Err(CallError::Refused(Refused::AnotherNode { node: NODE, name: name("a") })));
    let unreached = soon(links.call(&replaced, Lane::Heartbeat, b"x".to_vec(), PATIENCE)).await.unwrap_err();
    assert!(
        unreached.0.contains("a.example:7400") && unreached.0.contains("not the intended one"),
        "{unreached}"
    );
    assert_eq!(served.node.most.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_call_counts_its_limit_from_the_dial() {
    // A listener whose backlog accepts, and that never answers the hello.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let links = links(move |_| address.clone());
    let limit = Duration::from_millis(50);
    let called = soon(links.request(&member(), Lane::Heartbeat, b"x".to_vec(), limit)).await;
    assert!(matches!(called, Err(CallError::NotSent(_))), "{called:?}");
}

#[tokio::test]
async fn dropping_the_links_or_the_member_closes_the_connections() {
    let served = serve().await;
    let address = served.address.clone();
    let links = Arc::new(links(move |_| address.clone()));
    for lane in [Lane::Heartbeat, Lane::Replication] {
        assert_eq!(ask(&links, lane, "x").await, Ok("x".to_owned()));
    }
    links.retain(|_| false);
    assert_eq!(ask(&links, Lane::Heartbeat, "x").await, Ok("x".to_owned()));
    assert_eq!(served.node.greeted.load(Ordering::SeqCst), 3);
    // Nobody waits for this answer any more when the links go.
    let going = Arc::clone(&links);
    let call = tokio::spawn(async move {
        let _ = going.request(&member(), Lane::Heartbeat, b"never".to_vec(), PATIENCE).await;
    });
    served.node.runs(1).await;
    call.abort();
    let _ = call.await;
    drop(links);
    served.node.runs(0).await;
}

/// Gives one answer after the other, and the last one for ever.
struct Moving(Mutex<VecDeque<Vec<SocketAddr>>>);

impl HostLookup for Moving {
    fn look_up(&self, address: &str) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        assert_eq!(address, "a.example:7400");
        let mut answers = self.0.lock().unwrap();
        let now = if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0].clone() };
        Box::pin(async move { Ok(now) })
    }
}

#[tokio::test]
async fn a_host_that_moves_to_another_address_is_found_there() {
    let (before, after) = (serve().await, serve().await);
    let at = |served: &crate::support::Served| vec![served.listener.local_address()];
    let lookup = Moving(Mutex::new(VecDeque::from([at(&before), at(&after)])));
    let dialler = dialler().with_lookup(Arc::new(lookup));
    let links =
        Links::new(dialler, CLUSTER, (NodeId::from_random(0xb), name("b")), |member| member.address.clone());
    assert_eq!(ask(&links, Lane::Heartbeat, "x").await, Ok("x".to_owned()));
    assert_eq!(after.node.greeted.load(Ordering::SeqCst), 0);
    soon(before.listener.shutdown()).await;
    until_reached(&links).await;
    assert_eq!(after.node.greeted.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn of_several_addresses_the_one_that_leads_to_the_node_is_used() {
    let served = serve().await;
    let nobody: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let right = served.listener.local_address();
    let lookup = Moving(Mutex::new(VecDeque::from([vec![nobody, right]])));
    let dialler = dialler().with_lookup(Arc::new(lookup));
    let connection = soon(dialler.connect("a.example:7400", &crate::support::client())).await.unwrap();
    assert_eq!(connection.peer(), right);
}
