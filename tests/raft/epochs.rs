//! Epochs come from the log. The log is purged, its state is in a snapshot, and the cluster is made anew: epochs rise all the same.

use bellwether_tests::raft::Nodes;
use bellwether_tests::{json, run_to_end, until_blocking};

use crate::{stderr, three};

/// After so many entries a node makes a snapshot and purges the log before it.
const SNAPSHOT_EVERY: usize = 10_000;

/// Epochs of a recovered cluster are above this, whatever the length of the logs that were lost.
const GENERATION: u64 = 1 << 45;

/// One election, held again and again.
#[derive(Default)]
struct Election {
    last: u64,
}

impl Election {
    /// Leads by way of this node, as a client of the cluster, and returns the epoch, which has to be above the last.
    #[track_caller]
    fn rises(&mut self, nodes: &Nodes, at: usize) -> u64 {
        let acquired = until_blocking(|| {
            let output = nodes.run(at, &["acquire", "rises", "--ttl", "3s", "--renew", "1s"]);
            if output.status.success() { Ok(output) } else { Err(stderr(&output)) }
        });
        let epoch: u64 = String::from_utf8_lossy(&acquired.stdout).trim().parse().expect("an epoch");
        assert!(epoch > self.last, "{epoch} followed {}", self.last);
        self.last = epoch;
        epoch
    }
}

/// The last entry in the newest snapshot of a node.
fn snapshot(nodes: &Nodes, at: usize) -> Option<u64> {
    let files = std::fs::read_dir(nodes.seats[at].directory.join("snap")).ok()?;
    let included = |name: String| name.strip_suffix(".snapshot")?.parse().ok();
    files.filter_map(|file| included(file.ok()?.file_name().into_string().ok()?)).max()
}

/// Writes until every node has made a snapshot since the last one of this node.
#[track_caller]
fn make_snapshots(nodes: &Nodes, at: usize) {
    let last = snapshot(nodes, at).unwrap_or(0);
    nodes.ask(at, |client| client.fill(SNAPSHOT_EVERY));
    for at in 0..nodes.seats.len() {
        until_blocking(|| match snapshot(nodes, at) {
            Some(included) if included > last => Ok(()),
            older => Err(format!("n{at} makes no snapshot: {older:?}")),
        });
    }
}

#[test]
fn epochs_rise_through_snapshots_restarts_and_a_recovery() {
    let mut nodes = three();
    let mut election = Election::default();
    election.rises(&nodes, 0);
    make_snapshots(&nodes, 0);
    election.rises(&nodes, 1);
    nodes.agree();

    // All at once: each node goes on from its snapshot and the log after it.
    crash_and_restart(&mut nodes);
    election.rises(&nodes, 2);
    nodes.agree();

    // The log before the snapshot is gone, so a node with an empty disk gets the snapshot itself.
    let leader = nodes.leader(0);
    let wiped = (leader + 1) % 3;
    rejoin(&mut nodes, wiped);
    nodes.voters(leader, 3);
    assert!(snapshot(&nodes, wiped).is_some(), "it has the whole log, so nothing was purged");
    election.rises(&nodes, wiped);
    nodes.agree();
    let transferred = nodes.members(leader, &["transfer", &format!("n{wiped}")]);
    assert!(transferred.status.success(), "{transferred:?}");
    let before = election.rises(&nodes, wiped);
    assert!(before < GENERATION, "{before}");
    nodes.agree();

    // That node is all that is left.
    (0..3).for_each(|at| nodes.seats[at].kill());
    let mut recover = nodes.seats[wiped].command();
    recover.args(["recover", "-o", "json", "--yes", "--data-dir"]).arg(&nodes.seats[wiped].directory);
    let recovered = run_to_end(recover);
    assert!(recovered.status.success(), "{}", stderr(&recovered));
    assert_eq!(json(&recovered)["generation"], 1);
    nodes.recovered();
    nodes.start_ready([wiped]);
    assert!(election.rises(&nodes, wiped) > GENERATION);
    for at in (0..3).filter(|at| *at != wiped) {
        rejoin(&mut nodes, at);
    }
    nodes.voters(wiped, 3);
    election.rises(&nodes, leader);
    nodes.agree();

    // That the cluster was recovered is in the next snapshot too, where the log no longer says so.
    make_snapshots(&nodes, wiped);
    crash_and_restart(&mut nodes);
    assert!(election.rises(&nodes, leader) > GENERATION);
    rejoin(&mut nodes, leader);
    nodes.voters(wiped, 3);
    let other = nodes.run(leader, &["acquire", "never-held-before", "--ttl", "3s", "--renew", "1s"]);
    let first: u64 = String::from_utf8_lossy(&other.stdout).trim().parse().expect("an epoch");
    assert!(first > GENERATION, "a first epoch comes from the log and the recovery alone: {first}");
    nodes.agree();
}

fn crash_and_restart(nodes: &mut Nodes) {
    (0..3).for_each(|at| nodes.seats[at].kill());
    nodes.form();
}

/// It comes back with an empty disk.
#[track_caller]
fn rejoin(nodes: &mut Nodes, at: usize) {
    nodes.seats[at].kill();
    nodes.seats[at].wipe();
    nodes.start(at);
    let ready = nodes.ready(at);
    assert_eq!(ready.text("mode"), Some("join"), "{ready:?}");
}
