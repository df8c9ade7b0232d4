//! Clusters with certificates, and one that has expired.

use bellwether_tests::raft::Nodes;
use bellwether_tests::run_to_end;

use crate::authority::{Authority, FAR_AHEAD, LONG_AGO};
use crate::stderr;

#[test]
fn an_expired_certificate_is_refused_by_name_and_the_others_go_on() {
    let mut nodes = Nodes::new(3);
    let host = nodes.seats[0].address.rsplit_once(':').expect("a port").0.to_owned();
    let authority = Authority::new(nodes.path());
    let [ca, certificate, key] = authority.sign("good", &host, FAR_AHEAD);
    let expired = authority.sign("expired", &host, LONG_AGO);
    let flags = |[ca, certificate, key]: [&str; 3]| {
        ["--tls-ca", ca, "--tls-cert", certificate, "--tls-key", key].map(str::to_owned)
    };
    let usual = nodes.flags.clone();
    nodes.flags.extend(flags([&ca, &certificate, &key]));
    nodes.form();
    let list = |nodes: &Nodes, [ca, certificate, key]: [&str; 3]| {
        let mut command = nodes.seats[0].command();
        let url =
            format!("raft://{}?tls-ca={ca}&tls-cert={certificate}&tls-key={key}", nodes.seats[0].address);
        command.args(["members", "list", "-o", "json", "--backend", &url]);
        run_to_end(command)
    };
    let before = list(&nodes, [&ca, &certificate, &key]);
    assert!(before.status.success(), "{}", stderr(&before));

    let [_, expired_certificate, expired_key] = &expired;
    let looked = list(&nodes, [&ca, expired_certificate, expired_key]);
    assert_eq!(looked.status.code(), Some(77), "{}", stderr(&looked));
    assert!(stderr(&looked).contains("Expired"), "{}", stderr(&looked));

    let joining = nodes.add_seat_beside();
    let good = std::mem::replace(&mut nodes.flags, usual);
    nodes.flags.extend(flags([&ca, expired_certificate, expired_key]));
    nodes.flags.extend(["--join-timeout", "2s"].map(str::to_owned));
    let output = run_to_end(nodes.node_command(joining));
    assert_eq!(output.status.code(), Some(69), "{}", stderr(&output));
    assert!(stderr(&output).contains("Expired"), "{}", stderr(&output));

    // The files are read for every connection, so a renewed certificate counts without a restart; and this node joins with it.
    nodes.flags = good;
    nodes.start_ready([joining]);
    let after = list(&nodes, [&ca, &certificate, &key]);
    assert!(String::from_utf8_lossy(&after.stdout).contains("\"n3\""), "{after:?}");
}
