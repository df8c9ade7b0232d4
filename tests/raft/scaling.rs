//! More nodes, fewer nodes, and those that come back with the directories that they left with.

use bellwether_tests::until_blocking;

use crate::{judge, load, stderr, three};

#[test]
fn nodes_that_were_scaled_down_join_again_from_their_old_directories() {
    let mut nodes = three();
    let load = load(&nodes, 0);
    let added = [nodes.add_seat_beside(), nodes.add_seat_beside()];
    nodes.start_ready(added);
    let first = nodes.voters(0, 5).to_string();
    load.goes_on();

    for at in added {
        let name = format!("n{at}");
        let removed = nodes.members(0, &["remove", &name]);
        assert!(removed.status.success(), "{}", stderr(&removed));
        let ended = nodes.seats[at].ended();
        assert_eq!(ended.code, Some(76), "{ended:?}");
        assert!(ended.stderr.contains("removed from its cluster"), "{}", ended.stderr);
    }
    nodes.voters(0, 3);
    load.goes_on();

    for at in added {
        nodes.start(at);
        let ready = nodes.ready(at);
        assert_eq!(ready.text("mode"), Some("join"), "{ready:?}");
        assert!(!first.contains(ready.text("node").expect("an id")), "{ready:?}");
        assert!(nodes.seats[at].directory.join("archive").exists(), "what was there is kept");
    }
    nodes.voters(0, 5);
    load.goes_on();
    judge(&mut nodes, load, 0);
}

#[test]
fn the_leader_itself_is_removed_and_another_leads() {
    let mut nodes = three();
    let leader = nodes.leader(0);
    let other = (leader + 1) % 3;
    let load = load(&nodes, other);
    let removed = nodes.members(other, &["remove", &format!("n{leader}")]);
    assert!(removed.status.success(), "{}", stderr(&removed));
    assert_eq!(nodes.seats[leader].ended().code, Some(76));
    nodes.voters(other, 2);
    load.goes_on();
    judge(&mut nodes, load, other);
}

#[test]
fn a_removal_that_would_stop_the_cluster_is_refused() {
    let mut nodes = three();
    let leader = nodes.leader(0);
    let [down, up] = [(leader + 1) % 3, (leader + 2) % 3];
    nodes.seats[down].kill();
    // A node that answered within the last second is counted on.
    until_blocking(|| {
        let listed = nodes.list(leader);
        let members = listed["members"].as_array().expect("a list");
        let of =
            members.iter().find(|member| member["name"] == format!("n{down}").as_str()).expect("a member");
        if of["heard_ms_ago"].as_u64() > Some(1_000) { Ok(()) } else { Err(format!("still heard: {of}")) }
    });
    let output = nodes.members(leader, &["remove", &format!("n{up}")]);
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    assert!(stderr(&output).contains("that is no majority"), "{output:?}");
    nodes.start_ready([down]);
    nodes.voters(leader, 3);
    nodes.agree();
}
