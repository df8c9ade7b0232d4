//! The row "network partition" of the profile's testing matrix, with real processes on machines of their own: the leader's network
//! is blocked without a word, so nothing is refused and nothing is closed. It demotes by itself, its followers choose one among
//! them, and when the network is back it follows.

use std::time::Duration;

use bellwether_support::netns::{Network, Node};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_tests::{Candidate, bellwether, overlaps};

use super::KEY;

fn candidate(node: &Node, url: &str, id: &str) -> Candidate {
    let mut command = node.command(bellwether());
    command.args(["--backend", url, "--id", id, "run", KEY, "--events", "--ttl", "2s"]);
    Candidate::start(command)
}

/// Waits until one of them leads; which, and when it began.
fn next_leader(followers: &mut [Candidate]) -> (usize, bellwether_tests::EventLine) {
    for at in (0..followers.len()).cycle().take(3_000) {
        if let Some(line) = followers[at].wait("acquired", Duration::from_millis(10)) {
            return (at, line);
        }
    }
    panic!("nobody leads");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_network_is_blocked_demotes_by_itself_and_a_follower_leads() {
    let Some(mut network) = Network::new() else { return };
    let (apart, together, machine) = (network.node(), network.node(), network.node());
    let server = Server::start_on(Version::Current, &machine).await;
    let url = format!("{}?profile=leader&bucket=leaders&create=yes&ping=400ms", server.url());
    let mut leader = candidate(&apart, &url, "a");
    let first = leader.expect("acquired");
    let mut followers = [candidate(&together, &url, "b"), candidate(&together, &url, "c")];
    followers.iter_mut().for_each(Candidate::joined);
    let cut = network.cut(&apart);
    // While it is still cut off.
    let lost = leader.expect("lost");
    let (at, second) = next_leader(&mut followers);
    assert!(lost.boot() > cut && lost.text("reason") == Some("deadline"), "{lost:?}");
    let belief = lost.instant("deadline_boot_ns").expect("a deadline");
    assert!(second.boot() >= belief, "led {:?} too early", belief.since(second.boot()));
    assert!(second.epoch() > first.epoch(), "{second:?} after {first:?}");
    network.heal(&apart);
    let id = ["b", "c"][at];
    while leader.expect("leader_changed").text("leader") != Some(id) {}
    // What the old one had sent arrives now at the latest; a ttl and more of renewals stand it.
    let new = &mut followers[at];
    assert!(new.wait("lost", Duration::from_secs(3)).is_none(), "deposed: {:?}", new.said);
    assert!(new.leads() && !leader.leads());
    followers.iter_mut().for_each(Candidate::drain);
    let found = overlaps([&leader].into_iter().chain(&followers));
    assert!(found.is_empty(), "{found:?}");
}
