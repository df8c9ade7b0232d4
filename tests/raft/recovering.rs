//! A majority is lost for good, and an operator decides to go on with what is left.

use bellwether_tests::{json, run_to_end};

use crate::{judge, load, stderr, three};

#[test]
fn a_survivor_goes_on_after_recovery_with_everything_that_it_had_and_others_join_it() {
    let mut nodes = three();
    let before = load(&nodes, 0);
    before.goes_on();
    let record = before.end();
    nodes.agree();
    let lost = nodes.cluster().to_owned();
    nodes.seats[0].kill();
    nodes.seats[1].kill();

    let recover = |nodes: &bellwether_tests::raft::Nodes| {
        let mut command = nodes.seats[2].command();
        command.args(["recover", "-o", "json", "--yes", "--data-dir"]).arg(&nodes.seats[2].directory);
        run_to_end(command)
    };
    // Not while the node runs: a majority may be back.
    let refused = recover(&nodes);
    assert_eq!(refused.status.code(), Some(64), "{refused:?}");
    assert!(stderr(&refused).contains("another process uses"), "{refused:?}");
    nodes.seats[2].kill();
    let recovered = recover(&nodes);
    assert!(recovered.status.success(), "{}", stderr(&recovered));
    let recovered = json(&recovered);
    assert_eq!(recovered["lost"], lost.as_str(), "{recovered}");
    nodes.recovered();
    nodes.start_ready([2]);
    assert_eq!(recovered["cluster"], nodes.cluster());
    let load = load(&nodes, 2);
    load.goes_on();
    nodes.voters(2, 1);

    // One of those that were given up comes back: it is of another cluster, and is not let in with what it has.
    nodes.start(0);
    let view = bellwether_tests::until_blocking(|| nodes.look(0));
    assert_eq!(view.cluster.map(|cluster| cluster.to_string()), Some(lost));
    assert!(!view.is_ready, "{view:?}");
    load.goes_on();
    nodes.voters(2, 1);
    nodes.seats[0].kill();
    for at in [0, 1] {
        nodes.seats[at].wipe();
        nodes.start(at);
        let ready = nodes.ready(at);
        assert_eq!(ready.text("mode"), Some("join"), "{ready:?}");
    }
    nodes.voters(2, 3);
    nodes.ask(2, |client| record.check(client));
    judge(&mut nodes, load, 2);
}
