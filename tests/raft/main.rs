//! Raft clusters of real processes: `bellwether node` and `bellwether members` on real disks and real networks.
//!
//! Every test ends with the same questions: was there ever a second cluster, was anything that was acknowledged lost, and are the states
//! of all nodes equal?

#![cfg(target_os = "linux")]

mod addresses;
mod authority;
mod certificates;
mod checker;
mod clients;
mod epochs;
mod full_disk;
mod handover;
mod lost_disks;
mod recovering;
mod recovery_table;
mod refusals;
mod scaling;
mod storms;

use bellwether_tests::raft::{Load, Nodes, Record};

/// A cluster of three that is ready.
fn three() -> Nodes {
    let mut nodes = Nodes::new(3);
    nodes.form();
    nodes
}

/// Writes by way of this node first. Where the nodes have a network of their own, from that node's machine.
fn load(nodes: &Nodes, first: usize) -> Load {
    let make = nodes.client_maker(first);
    match nodes.seats[first].host.clone() {
        None => Load::start(move |write| write(&make())),
        Some(host) => Load::start(move |write| host.inside(|| write(&make()))),
    }
}

/// Ends the writes and asks the questions that every test ends with.
#[track_caller]
fn judge(nodes: &mut Nodes, load: Load, at: usize) -> Record {
    let record = load.end();
    nodes.agree();
    nodes.ask(at, |client| record.check(client));
    assert!(record.acknowledged() > 0, "{record:?}");
    record
}

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
