//! An election goes from one leader to the next: from `stop()` to the next leadership, hop by hop, beside two durable writes one after the
//! other, which is the least that it takes. The election of etcd's own client library in the same run.

use std::time::Duration;

use bellwether::{Election, ElectionName, Epoch, Store, boot_now};
use bellwether_benches::peers::version;
use bellwether_benches::{Hops, RawHandover, Row, Stamped, Stamping, Stamps, median, percentile, progress};
use bellwether_cluster::AdminClient;
use bellwether_raft::command::{AskLine, Command};
use bellwether_raft::from_url;
use bellwether_support::clock;
use bellwether_support::servers::etcd::{Etcd, EtcdClient};
use bellwether_support::servers::peers::etcd_client;

use crate::trio::{NODES, Trio, times};

const ROUNDS: usize = 100;
const ROUNDS_OF_ETCD: usize = 100;
const LIMIT: Duration = Duration::from_millis(10);
/// For a follower to be in the queue and to watch, and between two handovers: what one leaves behind is not part of the next.
const PAUSE: Duration = Duration::from_millis(100);
/// Makes a command about as long as that of a claim.
const NAME_BYTES: usize = 90;

pub(crate) async fn handovers() {
    progress(&format!("handing an election over {ROUNDS} times"));
    let hops = hand_over(&Trio::with_elections()).await;
    progress(&format!("the same at etcd, {ROUNDS_OF_ETCD} times"));
    let theirs = {
        let etcd = Etcd::start(NODES);
        EtcdClient::until_all(&etcd.endpoints()).answered();
        times(&EtcdClient::bench("handover", &etcd.endpoints(), &[&format!("--rounds={ROUNDS_OF_ETCD}")]))
    };
    let (ours, other, longest) = (hops.median(), median(theirs.clone()), percentile(theirs, 1.0));
    Row::time("raft", "handover", ours)
        .raw(hops.raw_median())
        .peer(election_of_etcd(), other.as_secs_f64())
        .note(format!("theirs has no deadline: a leader that was stopped believes in itself when it goes on; its longest took {longest:.2?}"))
        .print();
    hops.report("", LIMIT);
}

fn election_of_etcd() -> String {
    format!("concurrency.Election of {}", version(&etcd_client()))
}

async fn hand_over(trio: &Trio) -> Hops {
    let raw = trio.client(trio.leader().await);
    let mut leader = candidate(trio, 0).await;
    leader.election.wait_for_leadership().await.expect("a leadership");
    let mut hops = Hops::default();
    for round in 1..=ROUNDS {
        let follower = candidate(trio, round).await;
        let led = leader.election.id();
        follower.election.wait_until(|status| status.leader.as_ref() == Some(led)).await.expect("a leader");
        tokio::time::sleep(PAUSE).await;
        hops.hand_over(&leader, &follower).await;
        tokio::time::sleep(PAUSE).await;
        hops.note_raw(RawHandover { release: write(&raw).await, claim: write(&raw).await });
        leader = follower;
    }
    leader.election.stop().await.expect("a release");
    hops
}

/// A durable write with nothing around it, at the leader of the cluster: a request to a leader that there is not, which changes nothing once
/// a majority has it on disk. It is about as long as a claim.
pub(crate) async fn write(raw: &AdminClient) -> Duration {
    let on = ElectionName::new("x".repeat(NAME_BYTES)).expect("a name");
    let command = Command::Request { on, epoch: Epoch::ZERO, ask: AskLine::StepDown { to: None } };
    let begin = boot_now();
    raw.propose(command.encode()).await.expect("a write");
    boot_now().since(begin)
}

/// Each has a store, a session and a connection of its own, and each is connected to another node than the one before it.
async fn candidate(trio: &Trio, number: usize) -> Stamping {
    let inner = from_url(&trio.url_from(number % NODES), clock()).expect("a URL");
    let stamps = Stamps::default();
    let store = Store::from(Stamped { inner, stamps: stamps.clone() });
    let election = Election::builder("handed-over").backend(store).id(format!("c{number}")).start().await;
    Stamping { election: election.expect("a start"), stamps }
}
