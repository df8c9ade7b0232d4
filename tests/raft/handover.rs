//! A node that is asked to stop.

use std::time::Duration;

use bellwether_deadman::boot_now;
use bellwether_support::Stopped;

use crate::{judge, load, three};

#[test]
fn a_leader_that_is_asked_to_stop_hands_over_and_stays_a_member() {
    let mut nodes = three();
    let leader = nodes.leader(0);
    let other = (leader + 1) % 3;
    let before = nodes.voters(other, 3);
    let load = load(&nodes, other);
    load.goes_on();
    let ended = nodes.stop(leader);
    assert!(ended.stderr.contains("stays a member"), "{}", ended.stderr);
    let after = nodes.voters(other, 3);
    assert_ne!(nodes.leader(other), leader);
    let ids = |listed: &serde_json::Value| -> Vec<String> {
        let members = listed["members"].as_array().expect("a list");
        members.iter().map(|member| member["node"].to_string()).collect()
    };
    assert_eq!(ids(&before), ids(&after), "the members are the same");
    load.goes_on();
    // One term for the leader that was asked to, and not more: nobody waited for an election timeout.
    let term = |listed: &serde_json::Value| listed["term"].as_u64().expect("a term");
    assert_eq!(term(&after), term(&before) + 1, "{before} {after}");
    nodes.start_ready([leader]);
    judge(&mut nodes, load, other);
}

/// It waited for the answer of the stopped process for ten seconds, though another node leads after one.
#[test]
fn a_follower_that_asked_a_stopped_leader_does_not_wait_when_another_leads() {
    let mut nodes = three();
    let leader = nodes.leader(0);
    let follower = (leader + 1) % 3;
    let stopped = Stopped::process(nodes.seats[leader].process().pid());
    let asked = boot_now();
    let output = nodes.members(follower, &["list"]);
    let took = boot_now().since(asked);
    assert!(took < Duration::from_secs(8), "{took:?}: {output:?}");
    assert_ne!(nodes.leader(follower), leader);
    drop(stopped);
    nodes.agree();
}

#[test]
fn leadership_is_handed_to_the_voter_that_is_named() {
    let mut nodes = three();
    for to in [1, 2, 0] {
        let name = format!("n{to}");
        if nodes.leader(0) == to {
            let output = nodes.members(0, &["transfer", &name]);
            assert_eq!(output.status.code(), Some(69), "{output:?}");
            assert!(crate::stderr(&output).contains("leads already"), "{output:?}");
            continue;
        }
        let output = nodes.members(0, &["transfer", &name]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(nodes.leader(0), to);
    }
    nodes.agree();
}

#[test]
fn every_node_is_restarted_in_turn_under_load_and_no_acknowledged_write_is_lost() {
    let mut nodes = three();
    let before = nodes.voters(0, 3);
    let load = load(&nodes, 0);
    for at in 0..3 {
        load.goes_on();
        nodes.stop(at);
        load.goes_on();
        nodes.start(at);
        assert_eq!(nodes.ready(at).text("mode"), Some("restart"));
    }
    load.goes_on();
    let after = nodes.voters(0, 3);
    let named = |listed: &serde_json::Value| -> Vec<(String, String)> {
        let members = listed["members"].as_array().expect("a list");
        members.iter().map(|member| (member["name"].to_string(), member["node"].to_string())).collect()
    };
    assert_eq!(named(&before), named(&after));
    let record = judge(&mut nodes, load, 0);
    println!("{} writes, the longest pause {:?}", record.acknowledged(), record.longest_pause());
}
