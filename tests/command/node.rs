//! `bellwether node`, `members` and `recover`: what they refuse and with which words, and a node's life as scripts see it.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use bellwether_tests::{OutputLines, bellwether, json, on, run_to_end};
use rustix::process::Signal;
use serde_json::Value;

use crate::temporary;

fn typed(arguments: &[&str]) -> Output {
    let mut command = Command::new(bellwether());
    command.args(arguments);
    run_to_end(command)
}

#[track_caller]
fn refused(output: &Output, code: i32, sentence: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(sentence), "{said:?} does not say {sentence:?}");
}

/// A node by itself, on any port.
fn alone(directory: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(bellwether());
    command.args(["node", "-o", "json", "--name", "a-0", "--expect", "1", "--bind", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(directory).args(more);
    command
}

/// Until it is ready: its lines, and what it said.
fn ready(command: Command) -> (OutputLines, Value) {
    let mut node = OutputLines::run(command);
    let line = node.until(|line| line.contains("\"ready\""));
    (node, serde_json::from_str(&line).expect("JSON"))
}

fn url(ready: &Value) -> String {
    format!("raft://{}", ready["address"].as_str().expect("an address"))
}

#[test]
fn mistyped_flags_of_a_node_are_answered_with_what_to_write() {
    let peers = "a=127.0.0.1:1,b=127.0.0.1:2";
    for (flags, sentence) in [
        (&["--name", "a"][..], "Name them with --peers NAME=HOST:PORT"),
        (&["--peers", peers, "--peers-dns", "app"], "cannot be used with"),
        (&["--peers-dns", "app", "--peers-kubernetes", "app"], "cannot be used with"),
        (&["--peers", "a"], "write NAME=HOST:PORT"),
        (&["--peers", "a=h:1,a=h:2"], "is there twice"),
        (&["--peers-dns", "a b"], "is not a DNS name"),
        (&["--peers-kubernetes", "App"], "is not the name of a Service"),
        (&["--peers", peers, "--seed", "lowest"], "use lowest-ordinal, expect or explicit:NAME"),
        (&["--peers", peers, "--profile", "slow"], "use default or fast"),
        (&["--peers", peers, "--expect", "0"], "0 is not in 1..=99"),
        (&["--peers", peers, "--name", "a b"], "is not a node name"),
        (&["--peers", peers, "--join-retry", "1ms"], "at least 10ms"),
        (
            &["--peers", peers, "--secret-file", "/nowhere/secret"],
            "cannot read the secret in /nowhere/secret",
        ),
        (&["--peers", peers, "--tls-ca", "/ca.pem"], "give all three"),
        (&["--peers", peers, "--secret-file", "/s", "--tls-ca", "/ca.pem"], "cannot be used with"),
        (&["--expect", "1", "--bind", "0.0.0.0:7117"], "name one with --advertise HOST:PORT"),
        (&["--expect", "1", "--force-new-cluster", "all"], "has 32 hexadecimal digits"),
        (&["--peers", peers, "--ledger", "memory"], "write it like memory:"),
    ] {
        refused(&typed(&[&["node"], flags].concat()), 64, sentence);
    }
}

#[test]
fn a_node_that_would_listen_beyond_this_machine_unprotected_names_the_flags() {
    let place = temporary();
    let directory = place.path().display().to_string();
    let far = ["--bind", "0.0.0.0:0", "--advertise", "127.0.0.1:7117"];
    let output =
        typed(&[&["node", "--expect", "1", "--name", "a", "--data-dir", &directory], &far[..]].concat());
    refused(&output, 64, "--secret-file");
    refused(&output, 64, "--tls-ca, --tls-cert and --tls-key");
    let far = ["--bind", "127.0.0.1:0", "--advertise", "a.example.org:7117"];
    let output =
        typed(&[&["node", "--expect", "1", "--name", "a", "--data-dir", &directory], &far[..]].concat());
    refused(&output, 64, "--secret-file");
}

#[test]
fn a_secret_that_everybody_may_read_or_guess_is_refused() {
    let place = temporary();
    let file = place.path().join("secret");
    let node = || {
        let mut command = alone(&place.path().join("data"), &[]);
        command.arg("--secret-file").arg(&file);
        run_to_end(command)
    };
    std::fs::write(&file, "0123456789abcdef").expect("a file");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).expect("a mode");
    refused(&node(), 64, "chmod 600");
    std::fs::write(&file, "short").expect("a file");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("a mode");
    refused(&node(), 64, "openssl rand -hex 32");
}

#[test]
fn a_directory_that_is_in_use_or_of_another_node_or_may_not_be_written_is_told_apart() {
    let place = temporary();
    let directory = place.path().join("data");
    let (first, said) = ready(alone(&directory, &[]));
    refused(&run_to_end(alone(&directory, &[])), 64, "another process uses");
    let recover = |more: &[&str]| {
        let mut command = Command::new(bellwether());
        command.args(["recover", "--data-dir"]).arg(&directory).args(more);
        run_to_end(command)
    };
    refused(&recover(&["--yes"]), 64, "another process uses");
    drop(first);
    refused(
        &run_to_end(alone(&directory, &["--name", "a-0", "--name", "b-0"])),
        64,
        "cannot be used multiple",
    );
    let mut other = Command::new(bellwether());
    other
        .args(["node", "--expect", "1", "--name", "b-0", "--bind", "127.0.0.1:0", "--data-dir"])
        .arg(&directory);
    refused(&run_to_end(other), 64, "belongs to the node a-0");
    // Nobody may make a directory there, root included.
    refused(&run_to_end(alone(Path::new("/sys/kernel/bellwether"), &[])), 77, "has to belong to the user");
    assert_eq!(said["mode"], "bootstrap");
}

#[test]
fn a_join_timeout_says_what_was_missing() {
    let place = temporary();
    let (here, there) = (free_port(), free_port());
    let peers = format!("a={here},b={there}");
    let mut command = Command::new(bellwether());
    command.args(["node", "--name", "a", "--join-timeout", "300ms", "--peers", &peers, "--data-dir"]);
    let output = run_to_end({
        command.arg(place.path());
        command
    });
    refused(&output, 69, "these have not consented to form a cluster: b");
}

/// Free now; nobody else takes it soon.
fn free_port() -> String {
    let port = TcpListener::bind("127.0.0.1:0").expect("a port");
    port.local_addr().expect("an address").to_string()
}

#[test]
fn a_node_is_formed_stopped_started_again_and_recovered() {
    let place = temporary();
    let directory = place.path().join("data");
    let (mut node, first) = ready(alone(&directory, &[]));
    assert_eq!((first["name"].as_str(), first["mode"].as_str()), (Some("a-0"), Some("bootstrap")), "{first}");
    assert_eq!(
        (first["leader"].as_str(), first["members"][0].as_str()),
        (Some("a-0"), Some("a-0")),
        "{first}"
    );

    let listed = on(&url(&first), &["members", "list", "-o", "json"]);
    let view = json(&listed);
    assert_eq!(
        (&view["cluster"], &view["members"][0]["node"]),
        (&first["cluster"], &first["node"]),
        "{view}"
    );
    assert_eq!((&view["members"][0]["role"], &view["members"][0]["leader"]), (&"voter".into(), &true.into()));
    let table = on(&url(&first), &["members", "list"]);
    let table = String::from_utf8_lossy(&table.stdout);
    assert!(table.contains("NAME  NODE") && table.contains(first["cluster"].as_str().unwrap()), "{table}");
    let nodes = on(&url(&first), &["members", "nodes", "-o", "json"]);
    assert_eq!((nodes.status.code(), &json(&nodes)[0]["ready"]), (Some(0), &true.into()));
    refused(&on(&url(&first), &["members", "transfer"]), 69, "no other voter");
    refused(&on(&url(&first), &["members", "remove", "b-0"]), 69, "the members are a-0");
    refused(&on(&url(&first), &["members", "remove", "a-0"]), 69, "no majority");

    node.signal(Signal::TERM);
    node.until(|line| line.contains("\"stopped\""));
    assert_eq!(node.exit_code(), Some(0));
    let unready = on(&url(&first), &["members", "nodes"]);
    assert_eq!(unready.status.code(), Some(1), "{unready:?}");
    refused(&on(&url(&first), &["members", "list"]), 69, "cannot connect to");

    let (mut node, second) = ready(alone(&directory, &[]));
    assert_eq!((second["mode"].as_str(), &second["cluster"]), (Some("restart"), &first["cluster"]));
    node.signal(Signal::INT);
    assert_eq!(node.exit_code(), Some(0));

    let recover = |more: &[&str]| {
        let mut command = Command::new(bellwether());
        command.args(["recover", "-o", "json", "--data-dir"]).arg(&directory).args(more);
        run_to_end(command)
    };
    let planned = recover(&[]);
    refused(&planned, 64, "run it again with --yes");
    let plan = String::from_utf8_lossy(&planned.stdout);
    assert!(plan.contains("becomes the only voter") && plan.contains("a-0"), "{plan}");
    let recovered = json(&recover(&["--yes"]));
    assert_eq!((&recovered["lost"], &recovered["generation"]), (&first["cluster"], &1.into()), "{recovered}");
    let (_node, third) = ready(alone(&directory, &[]));
    assert_eq!((third["mode"].as_str(), &third["cluster"]), (Some("restart"), &recovered["cluster"]));
    assert_ne!(third["cluster"], first["cluster"]);
}

#[test]
fn a_cluster_that_is_given_up_is_followed_by_another_and_its_ledger_says_so() {
    let place = temporary();
    let (directory, store) = (place.path().join("data"), place.path().join("ledger"));
    let ledger = format!("file:{}", store.display());
    let (_, first) = ready(alone(&directory, &["--ledger", &ledger]));
    std::fs::remove_dir_all(&directory).expect("a lost disk");
    let lost = first["cluster"].as_str().expect("an id").to_owned();
    let refusing = run_to_end(alone(&directory, &["--ledger", &ledger]));
    refused(&refusing, 78, &format!("start a new cluster with --force-new-cluster {lost}"));
    let forced = ["--ledger", &ledger, "--force-new-cluster", &lost];
    let (node, second) = ready(alone(&directory, &forced));
    assert_eq!(second["mode"], "bootstrap");
    assert_ne!(second["cluster"], first["cluster"]);
    drop(node);
    let (_, third) = ready(alone(&directory, &forced));
    assert_eq!(
        (third["mode"].as_str(), &third["cluster"]),
        (Some("restart"), &second["cluster"]),
        "the flag stays"
    );
}

/// A ledger lets a node begin alone, so nobody else's consent stands in the way.
#[test]
fn a_cluster_that_runs_is_not_given_up_by_a_node_with_an_empty_directory_and_its_ledger() {
    let place = temporary();
    let ledger = format!("file:{}", place.path().join("ledger").display());
    let (_running, first) = ready(alone(&place.path().join("data"), &["--ledger", &ledger]));
    let (cluster, address) =
        (first["cluster"].as_str().expect("an id"), first["address"].as_str().expect("one"));
    let peers = format!("a-0={address},a-1={}", free_port());
    let second = |more: &[&str]| {
        let mut command = Command::new(bellwether());
        command.args(["node", "-o", "json", "--name", "a-1", "--seed", "explicit:a-1", "--peers", &peers]);
        command.args(["--ledger", &ledger, "--data-dir"]).arg(place.path().join("other")).args(more);
        command
    };
    let refusing = run_to_end(second(&["--force-new-cluster", cluster]));
    refused(&refusing, 78, "stop all its nodes before any of them starts with --force-new-cluster");
    // Without the flag, it joins what there is.
    assert_eq!(ready(second(&[])).1["cluster"], first["cluster"]);
}

#[test]
fn the_ledger_follows_a_cluster_through_its_recoveries_and_one_node_alone_is_recovered() {
    let place = temporary();
    let (directory, copy) = (place.path().join("data"), place.path().join("copy"));
    let ledger = format!("file:{}", place.path().join("ledger").display());
    let recover = |directory: &Path| {
        let mut command = Command::new(bellwether());
        command.args(["recover", "-o", "json", "--yes", "--ledger", &ledger, "--data-dir"]).arg(directory);
        run_to_end(command)
    };
    let (node, first) = ready(alone(&directory, &["--ledger", &ledger]));
    drop(node);
    let copied = Command::new("cp").arg("-r").arg(&directory).arg(&copy).status().expect("cp");
    assert!(copied.success());
    let mut last = first["cluster"].clone();
    for generation in 1..=2 {
        let recovered = json(&recover(&directory));
        assert_eq!(
            (&recovered["lost"], &recovered["generation"]),
            (&last, &generation.into()),
            "{recovered}"
        );
        assert_ne!(recovered["cluster"], last);
        last = recovered["cluster"].clone();
        let (_node, started) = ready(alone(&directory, &["--ledger", &ledger]));
        assert_eq!((started["mode"].as_str(), &started["cluster"]), (Some("restart"), &last));
    }
    // Another node of the first cluster would be a second past of it.
    refused(&recover(&copy), 78, "another node was recovered");
    std::fs::remove_dir_all(&directory).expect("a lost disk");
    let named = format!("cluster {} was formed on", last.as_str().expect("an id"));
    refused(&run_to_end(alone(&directory, &["--ledger", &ledger])), 78, &named);
}

#[test]
fn settings_of_a_node_come_from_its_section_and_members_need_a_cluster() {
    let place = temporary();
    let file = place.path().join("node.toml");
    let text = format!(
        "output = \"json\"\n[node]\nname = \"t-0\"\nexpect = 1\nbind = \"127.0.0.1:0\"\ndata-dir = \"{}\"\n",
        place.path().join("data").display()
    );
    std::fs::write(&file, text).expect("a file");
    let mut command = Command::new(bellwether());
    command.arg("--config").arg(&file).arg("node");
    assert_eq!(ready(command).1["name"], "t-0");
    std::fs::write(&file, "[node]\nseed = \"first\"\nexpect = 1\n").expect("a file");
    let mut command = Command::new(bellwether());
    command.arg("--config").arg(&file).arg("node");
    refused(&run_to_end(command), 64, "node.seed");
    for (url, sentence) in [
        ("memory:", "write raft://HOST:PORT"),
        ("raft://", "a node is missing"),
        ("raft://127.0.0.1:1?secret=x", "there are secret-file"),
        ("raft://127.0.0.1:1?secret-file=/nowhere", "cannot read the secret"),
    ] {
        refused(&on(url, &["members", "list"]), 64, sentence);
    }
    refused(&on("raft://127.0.0.1:1", &["members", "list"]), 69, "cannot connect to 127.0.0.1:1");
}
