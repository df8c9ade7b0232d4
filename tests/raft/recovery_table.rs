//! The recovery scenarios of a cluster, one test for each: a crash while it is formed, a crash while a node joins, the loss of the leader,
//! of all nodes, and of one disk.

use std::path::Path;
use std::time::Duration;

use bellwether_tests::raft::Nodes;
use bellwether_tests::until_blocking;

use crate::{judge, load, three};

/// After a start of so many milliseconds, the node is killed; and started again, for the next. Together they hit the time before the
/// listener is open, the invitations, the binding of voters, and the first moments of Raft, whatever the machine's speed.
const SERIES: [&[u64]; 3] = [&[5, 15, 30, 60], &[20, 40, 80, 160], &[50, 100, 200, 400]];

/// Kills the node again and again while it starts. Nothing announces the moments that matter, so time itself is the event.
fn crash_while_starting(nodes: &mut Nodes, at: usize, delays: &[u64]) {
    for millis in delays {
        nodes.start(at);
        std::thread::sleep(Duration::from_millis(*millis));
        nodes.seats[at].kill();
    }
}

#[test]
fn the_seed_crashes_during_bootstrap_and_completes_it_when_it_is_back() {
    for delays in SERIES {
        let mut nodes = Nodes::new(3);
        nodes.start(1);
        nodes.start(2);
        crash_while_starting(&mut nodes, 0, delays);
        nodes.start(0);
        let ready = [0, 1, 2].map(|at| nodes.ready(at));
        assert!(ready.iter().all(|line| line.text("leader").is_some()), "{delays:?}: {ready:?}");
        let load = load(&nodes, 0);
        load.goes_on();
        nodes.voters(0, 3);
        judge(&mut nodes, load, 0);
    }
}

#[test]
fn a_node_crashes_while_the_cluster_is_formed_and_is_in_it_when_it_is_back() {
    let mut nodes = Nodes::new(3);
    nodes.start(0);
    nodes.start(1);
    crash_while_starting(&mut nodes, 2, &[10, 30, 60, 120, 250]);
    nodes.start(2);
    (0..3).for_each(|at| drop(nodes.ready(at)));
    let load = load(&nodes, 2);
    load.goes_on();
    nodes.voters(0, 3);
    judge(&mut nodes, load, 0);
}

#[test]
fn a_node_crashes_while_it_joins_and_joins_when_it_is_back() {
    let mut nodes = three();
    let load = load(&nodes, 0);
    let joining = nodes.add_seat_beside();
    crash_while_starting(&mut nodes, joining, &[5, 15, 30, 60, 120, 250, 500]);
    nodes.start_ready([joining]);
    nodes.voters(0, 4);
    load.goes_on();
    judge(&mut nodes, load, 0);
}

#[test]
fn the_leader_crashes_another_leads_and_the_crashed_node_is_a_member_again() {
    let mut nodes = three();
    let before = nodes.voters(0, 3);
    let leader = nodes.leader(0);
    let other = (leader + 1) % 3;
    let load = load(&nodes, leader);
    load.goes_on();
    nodes.seats[leader].kill();
    // Those who ask during the election are answered after it, also where the last node that they ask is the one that is gone.
    let listed = nodes.members(other, &["list"]);
    assert!(listed.status.success(), "{}", crate::stderr(&listed));
    load.goes_on();
    assert_ne!(nodes.leader(other), leader);
    nodes.start(leader);
    assert_eq!(nodes.ready(leader).text("mode"), Some("restart"));
    let after = nodes.voters(other, 3);
    assert_eq!(ids(&before), ids(&after), "nobody has another id");
    judge(&mut nodes, load, other);
}

#[test]
fn all_nodes_crash_at_once_and_go_on_from_their_disks() {
    let mut nodes = three();
    let before = nodes.voters(0, 3);
    let load = load(&nodes, 0);
    load.goes_on();
    (0..3).for_each(|at| nodes.seats[at].kill());
    // The seed last: it is no more than any other now.
    for at in [2, 1, 0] {
        nodes.start(at);
    }
    for at in 0..3 {
        assert_eq!(nodes.ready(at).text("mode"), Some("restart"));
    }
    load.goes_on();
    assert_eq!(ids(&before), ids(&nodes.voters(0, 3)));
    judge(&mut nodes, load, 0);
}

#[test]
fn a_corrupt_disk_is_refused_while_the_others_go_on_and_the_node_joins_anew() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 3] = [
        ("raft.redb", |file| flip_bits(file)),
        ("raft.redb", |file| truncate(file)),
        ("IDENTITY.json", |file| truncate(file)),
    ];
    let mut nodes = three();
    let load = load(&nodes, 0);
    for (round, (file, damage)) in damages.into_iter().enumerate() {
        let victim = (nodes.leader(0) + 1) % 3;
        let old = nodes.ready(victim).text("node").map(str::to_owned);
        let directory = nodes.seats[victim].directory.clone();
        // A majority without the victim may acknowledge a write, so its log is looked at. The second text is asked for when the first is in
        // the file, so it is part of a later commit: when it is there, the first is on the disk for good.
        for (name, text) in [("mark", MARK), ("later", LATER)] {
            let written = nodes.client(0).write(&format!("{name}-{round}"), text);
            assert!(written.is_done(), "{written:?}");
            let log = directory.join("raft.redb");
            until_blocking(|| match places(&std::fs::read(&log).expect("our own file"), text).is_empty() {
                true => Err(format!("{text:?} is not in {}", log.display())),
                false => Ok(()),
            });
        }
        nodes.seats[victim].kill();
        damage(&directory.join(file));

        nodes.start(victim);
        let ended = nodes.seats[victim].ended();
        assert_eq!(ended.code, Some(74), "{ended:?}");
        assert!(ended.stderr.contains(file) && ended.stderr.contains("move"), "{}", ended.stderr);
        load.goes_on();
        // What could still be looked at is: nothing that was refused is touched.
        assert!(directory.join(file).exists());

        std::fs::rename(&directory, directory.with_extension(format!("{round}-put-away"))).expect("our own");
        nodes.start(victim);
        let ready = nodes.ready(victim);
        assert_eq!(ready.text("mode"), Some("join"), "{ready:?}");
        assert_ne!(ready.text("node"), old.as_deref(), "a new disk is a new node");
        let listed = nodes.voters(0, 3);
        assert!(!ids(&listed).contains(&old.unwrap_or_default()), "{listed}");
    }
    judge(&mut nodes, load, 0);
}

/// The node ids of a list of members.
fn ids(listed: &serde_json::Value) -> Vec<String> {
    let members = listed["members"].as_array().expect("a list");
    members.iter().map(|member| member["node"].as_str().expect("an id").to_owned()).collect()
}

/// What is written before each damage, to be found in the file.
const MARK: &str = "a text that is long enough to be found in a file";

/// What is written after it.
const LATER: &str = "another text, which is written after the first one";

fn places(bytes: &[u8], text: &str) -> Vec<usize> {
    let last = bytes.len().saturating_sub(text.len());
    (0..last).filter(|at| bytes[*at..].starts_with(text.as_bytes())).collect()
}

/// One bit in every copy of the mark: one of them is in the log, and others may be on pages that are free by now.
fn flip_bits(file: &Path) {
    let mut bytes = std::fs::read(file).expect("our own file");
    let at = places(&bytes, MARK);
    assert!(!at.is_empty(), "the text is not in {}", file.display());
    at.into_iter().for_each(|at| bytes[at] ^= 1);
    std::fs::write(file, bytes).expect("our own file");
}

fn truncate(file: &Path) {
    let open = std::fs::OpenOptions::new().write(true).open(file).expect("our own file");
    let length = open.metadata().expect("our own file").len();
    open.set_len(length / 2).expect("our own file");
}

/// A copy of a directory, with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.expect("coreutils are installed").success());
}
