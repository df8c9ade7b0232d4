//! Nodes that are known by names, all of which lead elsewhere after a restart.

use std::net::Ipv4Addr;
use std::process::Command;

use bellwether_support::servers::dns::DnsServer;
use bellwether_support::servers::own_address;
use bellwether_tests::raft::Nodes;
use bellwether_tests::{permitted, until_blocking};

use crate::{judge, load};

const PORT: u16 = 7117;

/// A place in the loopback for each node, and its name.
fn records() -> Vec<(String, Ipv4Addr)> {
    (0..3).map(record).collect()
}

fn record(number: usize) -> (String, Ipv4Addr) {
    (format!("n{number}.raft.test"), own_address())
}

/// A seat for a node that others know by its name, and that asks this server for theirs.
fn add_seat(nodes: &mut Nodes, server: &DnsServer, (name, address): &(String, Ipv4Addr)) {
    let resolver = nodes.path().join("resolv.conf");
    std::fs::write(&resolver, format!("nameserver {}\n", server.at().ip())).expect("our own directory");
    // As in a container of its own: the machine's names stay as they are.
    let script = format!("mount --bind {} /etc/resolv.conf && exec \"$@\"", resolver.display());
    let seat = nodes.add_seat(format!("{address}:{PORT}"));
    seat.advertised = format!("{name}:{PORT}");
    seat.wrapper = ["unshare", "--mount", "sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
}

#[test]
fn all_addresses_change_at_once_and_the_cluster_goes_on_under_the_same_names() {
    if !permitted(Command::new("unshare").args(["--mount", "true"]), "names that lead elsewhere") {
        return;
    }
    let first = records();
    let mut server = DnsServer::of_hosts(&first);
    let mut nodes = Nodes::new(0);
    nodes.use_secret();
    for host in &first {
        add_seat(&mut nodes, &server, host);
    }
    nodes.forms_with(3);
    nodes.form();
    let before = nodes.voters(0, 3);
    assert!(before.to_string().contains("n0.raft.test:7117"), "{before}");
    let load_before = load(&nodes, 0);
    load_before.goes_on();
    let record = load_before.end();

    // Nobody is where anybody was, and two of them are where another was: a name is no address.
    (0..3).for_each(|at| nodes.seats[at].kill());
    let mut moved = records();
    moved[0].1 = first[1].1;
    moved[1].1 = first[0].1;
    server.serve_hosts(&moved);
    for (seat, (_, address)) in nodes.seats.iter_mut().zip(&moved) {
        seat.address = format!("{address}:{PORT}");
    }
    nodes.form();
    for at in 0..3 {
        assert_eq!(nodes.ready(at).text("mode"), Some("restart"));
    }
    let load_after = load(&nodes, 1);
    load_after.goes_on();

    // And one by itself, while the others run.
    let last = own_address();
    nodes.seats[2].kill();
    moved[2].1 = last;
    server.serve_hosts(&moved);
    nodes.seats[2].address = format!("{last}:{PORT}");
    nodes.start_ready([2]);
    load_after.goes_on();
    assert_eq!(nodes.voters(0, 3)["cluster"], before["cluster"]);
    judge(&mut nodes, load_after, 1);
    record.check(&nodes.client(0));
}

#[test]
fn nodes_find_each_other_by_srv_records_that_come_one_after_the_other() {
    if !permitted(Command::new("unshare").args(["--mount", "true"]), "nodes that SRV records name") {
        return;
    }
    const RECORDS: &str = "_raft._tcp.app.raft.test";
    let mut hosts = records();
    let mut server = DnsServer::of_service(RECORDS, &[], PORT);
    let mut nodes = Nodes::new(0);
    nodes.use_secret();
    for host in &hosts {
        add_seat(&mut nodes, &server, host);
    }
    nodes.peers_dns = Some("app.raft.test".to_owned());

    // No record at all, and then one too few: all nodes run, and none of them forms anything.
    (0..3).for_each(|at| nodes.start(at));
    for known in [0, 2] {
        server.serve_service(RECORDS, &hosts[..known], PORT);
        for at in 0..3 {
            let view = until_blocking(|| nodes.view(at));
            assert!(view.cluster.is_none() && !view.is_ready, "with {known} of 3 records: {view:?}");
        }
    }
    server.serve_service(RECORDS, &hosts, PORT);
    (0..3).for_each(|at| drop(nodes.ready(at)));
    let listed = nodes.voters(0, 3).to_string();
    assert!(listed.contains("n2.raft.test:7117"), "{listed}");
    let load = load(&nodes, 0);
    load.goes_on();

    // One more pod: it finds the others as they found each other, and joins them.
    hosts.push(record(3));
    server.serve_service(RECORDS, &hosts, PORT);
    add_seat(&mut nodes, &server, &hosts[3]);
    nodes.start(3);
    let ready = nodes.ready(3);
    assert_eq!(ready.text("mode"), Some("join"), "{ready:?}");
    nodes.voters(3, 4);
    load.goes_on();
    judge(&mut nodes, load, 0);
}
