//! Disks that are wiped, and disks that come back: where a second cluster would come from.

use std::time::Duration;

use bellwether_deadman::boot_now;
use bellwether_tests::raft::{Nodes, Outcome};
use bellwether_tests::until_blocking;

use crate::recovery_table::copy;
use crate::{judge, load, three};

/// Long enough for a node that sees nobody to do whatever it would do: some rounds of invitations and several elections.
const ALONE: Duration = Duration::from_secs(2);

/// Watches a node that is alone: it must not acknowledge anything, nor name another cluster.
#[track_caller]
fn does_nothing_alone(nodes: &mut Nodes, at: usize) {
    let end = boot_now() + ALONE;
    let mut views = 0;
    while boot_now() < end {
        let outcome = nodes.ask(at, |client| client.write("alone", "alone"));
        assert!(!outcome.is_done(), "a node without others acknowledges: {outcome:?}");
        if let Ok(view) = nodes.view(at) {
            assert!(!view.is_ready, "{view:?}");
            views += 1;
        }
        nodes.assert_one_cluster();
    }
    assert!(views > 0, "it was never asked");
}

#[test]
fn a_seed_that_is_wiped_while_it_is_cut_off_forms_no_second_cluster() {
    let Some(mut nodes) = Nodes::in_network(3) else { return };
    nodes.form();
    let old = nodes.ready(0).text("node").map(str::to_owned);
    let load = load(&nodes, 1);
    load.goes_on();
    let host = nodes.seats[0].host.clone().expect("it has a machine");
    nodes.network.as_ref().expect("a network").cut(&host);
    nodes.seats[0].kill();
    nodes.seats[0].wipe();
    nodes.start(0);
    until_blocking(|| nodes.view(0));
    load.goes_on();
    does_nothing_alone(&mut nodes, 0);
    assert_eq!(nodes.view(0).expect("it answers").cluster, None);
    load.goes_on();

    nodes.network.as_ref().expect("a network").heal(&host);
    let ready = nodes.ready(0);
    assert_eq!(ready.text("mode"), Some("join"), "{ready:?}");
    assert_ne!(ready.text("node"), old.as_deref());
    nodes.voters(1, 3);
    judge(&mut nodes, load, 1);
    let read = nodes.ask(1, |client| client.read("alone"));
    assert!(matches!(read, Outcome::Done { before: None, .. }), "{read:?}");
}

#[test]
fn an_old_directory_of_a_removed_member_is_put_away_and_its_node_id_never_used_again() {
    let Some(mut nodes) = Nodes::in_network(3) else { return };
    nodes.form();
    let load = load(&nodes, 0);
    let old = nodes.ready(2).text("node").expect("an id").to_owned();
    if nodes.leader(0) == 2 {
        assert!(nodes.members(0, &["transfer", "n0"]).status.success());
    }
    load.goes_on();
    nodes.stop(2);
    let directory = nodes.seats[2].directory.clone();
    let kept = directory.with_extension("copy");
    copy(&directory, &kept);
    let removed = nodes.members(0, &["remove", "n2"]);
    assert!(removed.status.success(), "{removed:?}");
    load.goes_on();

    // Back with its old disk, and without a link to the others: it may believe to be a member, but is alone.
    nodes.seats[2].wipe();
    copy(&kept, &directory);
    let host = nodes.seats[2].host.clone().expect("it has a machine");
    nodes.network.as_ref().expect("a network").cut(&host);
    nodes.start(2);
    until_blocking(|| nodes.view(2));
    does_nothing_alone(&mut nodes, 2);
    load.goes_on();

    nodes.network.as_ref().expect("a network").heal(&host);
    let ready = nodes.ready(2);
    assert_eq!(ready.text("mode"), Some("join"), "{ready:?}");
    let new = ready.text("node").expect("an id").to_owned();
    assert_ne!(new, old);
    assert!(directory.join("archive").join(&old).join("raft.redb").exists(), "nothing is deleted");
    let listed = nodes.voters(0, 3).to_string();
    assert!(listed.contains(&new) && !listed.contains(&old), "{listed}");
    judge(&mut nodes, load, 0);
}

#[test]
fn a_wiped_follower_takes_the_place_of_its_old_self() {
    let mut nodes = three();
    let leader = nodes.leader(0);
    let follower = (leader + 1) % 3;
    let old = nodes.ready(follower).text("node").expect("an id").to_owned();
    let load = load(&nodes, leader);
    load.goes_on();
    nodes.seats[follower].kill();
    nodes.seats[follower].wipe();
    nodes.start(follower);
    let ready = nodes.ready(follower);
    assert_eq!(ready.text("mode"), Some("join"), "{ready:?}");
    let listed = nodes.voters(leader, 3).to_string();
    assert!(!listed.contains(&old), "{listed}");
    judge(&mut nodes, load, leader);
}

#[test]
fn two_of_three_wiped_disks_stop_the_cluster_instead_of_making_another() {
    let mut nodes = three();
    let before = nodes.client(2).write("kept", "text");
    assert!(before.is_done(), "{before:?}");
    for at in [0, 1] {
        nodes.seats[at].kill();
        nodes.seats[at].wipe();
    }
    // One voter of three is left, and the two that were wiped have forgotten: there is no majority, and nobody may invent one.
    nodes.start(0);
    nodes.start(1);
    until_blocking(|| nodes.view(0).and_then(|_| nodes.view(1)));
    let end = boot_now() + ALONE;
    while boot_now() < end {
        let outcome = nodes.client(0).write("kept", "another");
        assert!(!outcome.is_done(), "{outcome:?}");
        for at in 0..3 {
            let view = until_blocking(|| nodes.view(at));
            assert!(at == 2 || view.cluster.is_none(), "{view:?}");
        }
    }
    nodes.assert_one_cluster();
}
