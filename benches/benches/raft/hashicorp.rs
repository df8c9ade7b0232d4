//! The cluster's own leader beside that of hashicorp/raft, whose library elects nothing else: three processes of each, with fsync, at their
//! defaults. From the end of a leader to the first write that the next one has on disk.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use bellwether_benches::peers::{Process, version};
use bellwether_benches::{Row, median, progress};
use bellwether_cluster::Profile;
use bellwether_support::Scratch;
use bellwether_support::servers::peers::hashicorp_raft;

use crate::failovers::fail_over;
use crate::transfers::transfer;
use crate::trio::{NODES, Trio};

const ROUNDS: usize = 9;
const LONGEST: Duration = Duration::from_secs(30);
/// A node that came back has what the others have, and each round begins at another point between two heartbeats.
const PAUSE: Duration = Duration::from_millis(700);
const STEP: Duration = Duration::from_millis(30);

pub(crate) async fn hashicorp() {
    progress(&format!("ending a leader of hashicorp/raft {ROUNDS} times in each way"));
    let name = format!("{}, three nodes, its defaults", version(&hashicorp_raft()));
    let theirs = Nodes::form().await.end_leaders().await;
    progress("the same with ours");
    let transfers = transfer(&Trio::form(Profile::Default)).await;
    let failovers = fail_over(Profile::Default).await;
    for (what, ours, theirs) in [
        ("graceful transfer of the cluster, to a write at the next leader", transfers, theirs.handed),
        ("kill -9 of the cluster's leader to the next write", failovers, theirs.killed),
    ] {
        Row::time("raft", what, median(ours))
            .set("profile default")
            .peer(&name, median(theirs).as_secs_f64())
            .note("ours ends with the answer at a client, theirs with the write at the new leader itself")
            .print();
    }
}

struct Nodes {
    // Before the directory, which the processes write to.
    processes: Vec<Process>,
    leader: usize,
    scratch: Scratch,
    addresses: Vec<String>,
}

#[derive(Default)]
struct Took {
    handed: Vec<Duration>,
    killed: Vec<Duration>,
}

impl Nodes {
    async fn form() -> Nodes {
        let held: Vec<TcpListener> =
            (0..NODES).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let addresses = held.iter().map(|port| port.local_addr().expect("an address").to_string()).collect();
        drop(held);
        let mut nodes = Nodes { processes: Vec::new(), leader: 0, scratch: Scratch::new(), addresses };
        nodes.processes = (0..NODES).map(|number| nodes.start(number)).collect();
        (nodes.leader, _) = nodes.written(None).await;
        nodes
    }

    fn start(&self, number: usize) -> Process {
        let mut command = Command::new(hashicorp_raft());
        command.args(["node", "--id", &number.to_string(), "--at", &self.addresses[number]]);
        command.args(["--peers", &self.addresses.join(",")]);
        command.arg("--dir").arg(self.scratch.path().join(number.to_string()));
        Process::spawn("hashicorp/raft", command)
    }

    /// The next node that leads and has written, other than this one, and when it had.
    async fn written(&mut self, but: Option<usize>) -> (usize, bellwether::Boot) {
        let others = self.processes.iter_mut().enumerate().filter(|(number, _)| Some(*number) != but);
        let all = others.map(|(number, process)| {
            Box::pin(async move { (number, process.until("written", LONGEST).await.at) })
        });
        futures_util::future::select_all(all).await.0
    }

    async fn end_leaders(mut self) -> Took {
        let mut took = Took::default();
        for round in 0..ROUNDS as u32 {
            tokio::time::sleep(PAUSE + STEP * round).await;
            let old = self.leader;
            let asked = self.processes[old].stop().await;
            let (next, at) = self.written(Some(old)).await;
            took.handed.push(at.since(asked));
            self.leader = next;
            tokio::time::sleep(PAUSE + STEP * round).await;
            let killed = self.processes[next].kill();
            let (leader, at) = self.written(Some(next)).await;
            took.killed.push(at.since(killed));
            self.leader = leader;
            self.processes[next] = self.start(next);
        }
        took
    }
}
