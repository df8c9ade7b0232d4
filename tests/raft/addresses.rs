//! Nodes that are known by names, all of which lead elsewhere after a restart.

use std::process::Command;

use bellwether_support::servers::dns::DnsServer;
use bellwether_support::servers::own_address;
use bellwether_tests::permitted;
use bellwether_tests::raft::Nodes;

use crate::{judge, load};

const PORT: u16 = 7117;

/// A place in the loopback for each node, and its name.
fn records() -> Vec<(String, std::net::Ipv4Addr)> {
    (0..3).map(|number| (format!("n{number}.raft.test"), own_address())).collect()
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
    let resolver = nodes.path().join("resolv.conf");
    std::fs::write(&resolver, format!("nameserver {}\n", server.at().ip())).expect("our own directory");
    // As in a container of its own: the machine's names stay as they are.
    let script = format!("mount --bind {} /etc/resolv.conf && exec \"$@\"", resolver.display());
    let wrapper = ["unshare", "--mount", "sh", "-c", &script, "sh"].map(str::to_owned);
    for (name, address) in &first {
        let seat = nodes.add_seat(format!("{address}:{PORT}"));
        seat.advertised = format!("{name}:{PORT}");
        seat.wrapper = wrapper.to_vec();
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
