//! A node whose disk is full stops with a sentence; the others go on, and with room it is back.

use std::process::Command;

use bellwether_tests::raft::{Nodes, Outcome};
use bellwether_tests::{Mount, permitted};

/// More than a log needs to begin with, and less than the test writes.
const DISK_BYTES: usize = 6 << 20;
/// Of one write: about as much as a leader may publish about itself.
const TEXT_BYTES: usize = 4_000;

#[test]
fn a_full_disk_stops_one_node_with_a_sentence_and_with_room_it_is_back() {
    if !permitted(Command::new("unshare").args(["--mount", "true"]), "a full disk") {
        return;
    }
    let mut nodes = Nodes::new(3);
    let at = nodes.seats[2].directory.clone();
    std::fs::create_dir_all(&at).expect("our own directory");
    let disk = Mount::tmpfs(at, c"size=6m");
    nodes.form();
    let client = nodes.client(0);
    let text = "x".repeat(TEXT_BYTES);
    let mut written: Vec<(String, String)> = Vec::new();
    for number in 0..2 * DISK_BYTES / TEXT_BYTES {
        let (name, text) = (format!("full-{number}"), format!("{number}-{text}"));
        match client.write(&name, &text) {
            done if done.is_done() => written.push((name, text)),
            // That of the node that just stopped, if it led.
            other => println!("{name}: {other:?}"),
        }
    }
    let ended = nodes.seats[2].ended();
    assert_eq!(ended.code, Some(74), "{ended:?}");
    assert!(ended.stderr.contains("make room"), "{}", ended.stderr);
    assert!(written.len() * TEXT_BYTES > DISK_BYTES, "the others went on: {}", written.len());

    let grown = Command::new("mount").args(["-o", "remount,size=200m"]).arg(disk.path()).status();
    assert!(grown.expect("mount is there").success());
    nodes.start_ready([2]);
    nodes.voters(0, 3);
    nodes.agree();
    let (name, text) = written.last().expect("something was written");
    assert!(matches!(client.read(name), Outcome::Done { before: Some(found), .. } if found == *text));
    nodes.seats[2].kill();
    drop(disk);
}
