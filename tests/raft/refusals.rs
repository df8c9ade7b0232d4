//! What a node or an operator is refused, with its exit code and a sentence that says what to do.

use std::process::Command;

use bellwether_tests::raft::Nodes;
use bellwether_tests::{Candidate, run_to_end};

use crate::{judge, load, stderr, three};

/// Runs a node that is to end by itself.
#[track_caller]
fn refused(command: Command, code: i32, parts: &[&str]) {
    let output = run_to_end(command);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for part in parts {
        assert!(said.contains(part), "no {part:?} in: {said}");
    }
}

#[test]
fn a_second_process_on_one_data_directory_is_refused_and_the_first_goes_on() {
    let mut nodes = three();
    let load = load(&nodes, 0);
    load.goes_on();
    for at in 0..3 {
        let directory = nodes.seats[at].directory.display().to_string();
        refused(nodes.node_command(at), 64, &["another process uses", &directory, "a directory of its own"]);
    }
    load.goes_on();
    judge(&mut nodes, load, 0);
}

#[test]
fn a_directory_of_another_node_is_refused() {
    let mut nodes = three();
    nodes.stop(1);
    nodes.stop(2);
    nodes.seats[1].directory = nodes.seats[2].directory.clone();
    refused(nodes.node_command(1), 64, &["belongs to the node n2, and this one is n1"]);
}

#[test]
fn a_wrong_secret_is_refused_on_both_sides() {
    let mut nodes = Nodes::new(3);
    nodes.use_secret();
    nodes.form();
    let load = load(&nodes, 0);
    let wrong = nodes.write_secret("wrong", "something else altogether\n");
    let (wrong, address) = (wrong.display().to_string(), nodes.seats[0].address.clone());

    let mut list = Command::new(bellwether_tests::bellwether());
    list.args(["members", "list", "--backend", &format!("raft://{address}?secret-file={wrong}")]);
    refused(list, 77, &["secret", &address]);
    let mut list = Command::new(bellwether_tests::bellwether());
    list.args(["members", "list", "--backend", &format!("raft://{address}")]);
    refused(list, 77, &["secret", &address]);

    let joining = nodes.add_seat_beside();
    let mut node = nodes.node_command(joining);
    node.args(["--join-timeout", "2s"]);
    let words: Vec<_> = node.get_args().map(|word| word.to_owned()).collect();
    let right = words.iter().rposition(|word| word == "--secret-file").expect("it has a secret") + 1;
    let mut node = Command::new(node.get_program());
    node.args(words.iter().enumerate().map(|(at, word)| if at == right { wrong.as_ref() } else { &**word }));
    refused(node, 69, &["secret", "not ready after 2s"]);
    load.goes_on();
    nodes.voters(0, 3);
    judge(&mut nodes, load, 0);
}

#[test]
fn a_node_of_another_cluster_under_a_member_s_address_changes_neither_cluster() {
    let mut nodes = three();
    let leader = nodes.leader(0);
    let gone = (leader + 1) % 3;
    let load = load(&nodes, leader);
    nodes.stop(gone);

    // The same name, the same address, and a cluster of its own.
    let own = nodes.path().join("another");
    let start = || {
        let mut command = nodes.seats[gone].command();
        command.args(["-o", "json", "node", "--name", &nodes.seats[gone].name, "--expect", "1"]);
        command.args(["--bind", &nodes.seats[gone].address, "--data-dir"]).arg(&own);
        command
    };
    let mut other = Candidate::start(start());
    let ready = other.expect("ready");
    let (id, node) = (ready.text("cluster").map(str::to_owned), ready.text("node").map(str::to_owned));
    assert_ne!(id.as_deref(), Some(nodes.cluster()));
    load.goes_on();
    let added = nodes.members(leader, &["add", &nodes.seats[gone].address]);
    assert_eq!(added.status.code(), Some(69), "{added:?}");
    assert!(stderr(&added).contains("move its data directory away first"), "{added:?}");

    // Even when it is told that the others are its peers, it goes on from its disk.
    other.kill();
    let mut command = start();
    command.args(["--peers", &nodes.peers(), "--advertise", &nodes.seats[gone].address]);
    let mut other = Candidate::start(command);
    let ready = other.expect("ready");
    assert_eq!((ready.text("cluster"), ready.text("node")), (id.as_deref(), node.as_deref()));
    assert_eq!(ready.text("mode"), Some("restart"));
    load.goes_on();
    other.kill();

    nodes.start_ready([gone]);
    judge(&mut nodes, load, leader);
}

#[test]
fn listening_beyond_loopback_without_protection_is_refused() {
    let nodes = Nodes::new(1);
    let data = nodes.path().join("data");
    let node = |more: &[&str]| {
        let mut command = nodes.seats[0].command();
        command.args(["node", "--name", "n0", "--expect", "1", "--data-dir"]).arg(&data).args(more);
        command
    };
    let advice = ["--secret-file", "--tls-cert", "loopback"];
    refused(node(&["--bind", "0.0.0.0:7117", "--advertise", "127.0.0.1:7117"]), 64, &advice);
    refused(node(&["--bind", "[::]:7117", "--advertise", "[::1]:7117"]), 64, &advice);
    refused(node(&["--bind", "127.0.0.1:0", "--advertise", "db-0.example:7117"]), 64, &advice);
}
