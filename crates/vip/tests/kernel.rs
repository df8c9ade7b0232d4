//! Addresses on real interfaces, in network namespaces: what the kernel makes of what is asked of it.

#![cfg(target_os = "linux")]

use std::process::Command;
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use bellwether_support::netns::{Network, Node};
use bellwether_support::until_blocking;
use bellwether_vip::{AddressHold, Happening, VipError, VirtualAddress};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const V4: &str = "10.7.0.100/24@eth0";
const V6: &str = "fd00:7::100/64@eth0";

fn address(text: &str) -> VirtualAddress {
    text.parse().unwrap()
}

fn soon() -> Boot {
    boot_now() + Duration::from_secs(15)
}

fn ip(node: &Node, args: &str) -> String {
    let mut command = Command::new("ip");
    let output = command.args(["-n", &node.namespace]).args(args.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {args}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The line about this address, if the interface has it.
fn shown(node: &Node, address: &VirtualAddress) -> Option<String> {
    let all = ip(node, "-oneline address show dev eth0");
    all.lines().find(|line| line.contains(&format!(" {} ", address.cidr()))).map(str::to_owned)
}

/// The link address that this node sends to for an address.
fn neighbour(node: &Node, address: &VirtualAddress) -> Option<String> {
    let said = ip(node, &format!("neighbour show {} dev eth0", address.address()));
    said.split_whitespace().skip_while(|word| *word != "lladdr").nth(1).map(str::to_owned)
}

fn link_address(node: &Node) -> String {
    let said = ip(node, "-oneline link show dev eth0");
    said.split_whitespace().skip_while(|word| *word != "link/ether").nth(1).unwrap().to_owned()
}

fn acquire(node: &Node, text: &str, deadline: Boot) -> Result<AddressHold, VipError> {
    node.inside(|| AddressHold::acquire(&address(text), boot_now(), deadline))
}

#[test]
fn an_address_has_a_lifetime_works_at_once_and_is_removed() {
    let Some(mut network) = Network::new() else { return };
    let host = network.node();
    for text in [V4, V6] {
        let hold = acquire(&host, text, boot_now() + Duration::from_millis(13_900)).unwrap();
        let line = shown(&host, &address(text)).expect("it is set");
        assert!(line.contains("valid_lft 12sec") || line.contains("valid_lft 11sec"), "{line}");
        assert!(!line.contains("tentative"), "duplicate address detection delays it: {line}");
        host.inside(|| hold.release()).unwrap();
        assert_eq!(shown(&host, &address(text)), None);
    }
}

#[test]
fn an_address_that_nobody_refreshes_is_gone_before_the_deadline() {
    let Some(mut network) = Network::new() else { return };
    let host = network.node();
    let deadline = boot_now() + Duration::from_millis(3_100);
    for text in [V4, V6] {
        drop(acquire(&host, text, deadline).unwrap());
    }
    for text in [V4, V6] {
        until_blocking(|| match shown(&host, &address(text)) {
            Some(line) => Err(format!("still there: {line}")),
            None => Ok(()),
        });
        let left = deadline.since(boot_now());
        println!("{text} was gone {left:?} before the deadline");
        assert!(left > Duration::ZERO, "it outlived the deadline");
    }
}

#[test]
fn a_renewal_moves_the_lifetime() {
    let Some(mut network) = Network::new() else { return };
    let host = network.node();
    for text in [V4, V6] {
        let mut hold = acquire(&host, text, boot_now() + Duration::from_millis(3_100)).unwrap();
        hold.extend(boot_now(), boot_now() + Duration::from_millis(60_900)).unwrap();
        let line = shown(&host, &address(text)).expect("it is set");
        assert!(line.contains("valid_lft 59sec") || line.contains("valid_lft 58sec"), "{line}");
        assert_eq!(hold.due().map(|due| due < soon()), Some(true), "it is announced again");
    }
}

#[test]
fn an_address_that_somebody_removes_comes_back() {
    let Some(mut network) = Network::new() else { return };
    let host = network.node();
    for text in [V4, V6] {
        let mut hold = acquire(&host, text, soon()).unwrap();
        assert!(hold.look(boot_now()).is_none());
        ip(&host, &format!("address delete {} dev eth0", address(text).cidr()));
        let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
        let heard = poll(&mut [PollFd::new(&hold.watched(), PollFlags::IN)], Some(&limit));
        assert_eq!(heard, Ok(1), "nobody is told");
        assert!(matches!(hold.look(boot_now()), Some(Happening::Restored)));
        assert!(shown(&host, &address(text)).is_some());
    }
}

#[test]
fn the_host_s_own_addresses_and_routes_stay_as_they_are() {
    let Some(mut network) = Network::new() else { return };
    let host = network.node();
    ip(&host, "address add fd00:7::1/64 dev eth0 nodad");
    let before = (ip(&host, "-4 route show"), ip(&host, "-6 route show"));
    assert!(before.1.contains("fd00:7::/64") && !before.1.contains("expires"), "{}", before.1);
    for text in [V4, V6] {
        let mut hold = acquire(&host, text, soon()).unwrap();
        hold.extend(boot_now(), soon()).unwrap();
        assert_eq!((ip(&host, "-4 route show"), ip(&host, "-6 route show")), before);
        host.inside(|| hold.release()).unwrap();
        assert_eq!((ip(&host, "-4 route show"), ip(&host, "-6 route show")), before);
    }
}

#[test]
fn the_host_s_own_connections_do_not_begin_at_the_address() {
    let Some(mut network) = Network::new() else { return };
    let host = network.node();
    ip(&host, "address add fd00:7::1/64 dev eth0 nodad");
    for (text, client, own) in [(V4, "10.7.0.2", "10.7.0.1"), (V6, "fd00:7::2", "fd00:7::1")] {
        let _hold = acquire(&host, text, soon()).unwrap();
        let route = ip(&host, &format!("route get {client}"));
        assert!(route.contains(&format!("src {own} ")), "{route}");
    }
}

#[test]
fn an_address_alone_in_its_network_brings_a_route_that_ends_with_it() {
    let Some(mut network) = Network::new() else { return };
    let host = network.node();
    for (text, route, family) in
        [("10.8.0.100/24@eth0", "10.8.0.0/24", "-4"), ("fd00:8::100/64@eth0", "fd00:8::/64", "-6")]
    {
        let shown = || {
            let all = ip(&host, &format!("{family} route show"));
            all.lines().find(|line| line.starts_with(route)).map(str::to_owned)
        };
        let hold = acquire(&host, text, soon()).unwrap();
        assert!(shown().is_some());
        host.inside(|| hold.release()).unwrap();
        // The kernel leaves that of an IPv6 address with a lifetime to its own lifetime.
        assert!(shown().is_none_or(|line| line.contains("expires")), "{:?}", shown());
    }
}

#[test]
fn a_leftover_is_swept_at_the_start_and_nothing_else_is() {
    let Some(mut network) = Network::new() else { return };
    let host = network.node();
    // Beside others of Bellwether's own, which differ in the address or in the interface.
    for other in ["10.7.0.101/24@eth0", "10.7.0.100/24@lo"] {
        drop(acquire(&host, other, soon()).unwrap());
    }
    let own = address("10.7.0.1/24@eth0");
    let hold = acquire(&host, V4, soon()).unwrap();
    let check = || host.inside(|| AddressHold::check(&address(V4)));
    check().unwrap();
    assert!(shown(&host, &address(V4)).is_some(), "a living process has it");
    drop(hold);
    check().unwrap();
    assert_eq!(shown(&host, &address(V4)), None, "nobody has it");
    assert!(shown(&host, &own).is_some());
    assert!(shown(&host, &address("10.7.0.101/24@eth0")).is_some());
    assert!(ip(&host, "address show dev lo").contains("10.7.0.100/24"));
}

#[test]
fn what_somebody_else_set_is_refused_and_left_alone() {
    let Some(mut network) = Network::new() else { return };
    let host = network.node();
    for (set, said) in [
        ("10.7.0.100/24 dev eth0", "without a lifetime"),
        ("10.7.0.100/24 dev eth0 valid_lft 600 preferred_lft 600", "another program"),
        ("10.7.0.100/32 dev eth0", "10.7.0.100/32"),
    ] {
        ip(&host, &format!("address add {set}"));
        let checked = host.inside(|| AddressHold::check(&address(V4))).unwrap_err();
        let acquired = acquire(&host, V4, soon()).unwrap_err();
        for error in [checked.to_string(), acquired.to_string()] {
            assert!(error.contains(said), "{error}");
        }
        assert!(!host.inside(|| AddressHold::remove_for_another(&address(V4))).unwrap());
        let (cidr, _) = set.split_once(' ').unwrap();
        assert!(ip(&host, "address show dev eth0").contains(cidr), "{set} is gone");
        ip(&host, &format!("address delete {cidr} dev eth0"));
    }
}

#[test]
fn an_interface_that_is_missing_or_down_is_named() {
    let Some(mut network) = Network::new() else { return };
    let host = network.node();
    let said = |text| host.inside(|| AddressHold::check(&address(text))).unwrap_err().to_string();
    assert_eq!(said("10.7.0.100/24@eth9"), "there is no interface eth9; there are lo, eth0");
    ip(&host, "link set eth0 down");
    assert!(said(V4).contains("ip link set eth0 up"));
}

#[test]
fn neighbours_are_told_without_asking() {
    let Some(mut network) = Network::new() else { return };
    let (host, client) = (network.node(), network.node());
    ip(&client, "address add fd00:7::2/64 dev eth0 nodad");
    for text in [V4, V6] {
        let wanted = address(text);
        let stale = "lladdr 02:00:00:00:00:99 dev eth0 nud stale";
        ip(&client, &format!("neighbour replace {} {stale}", wanted.address()));
        let _hold = acquire(&host, text, soon()).unwrap();
        let link = link_address(&host);
        until_blocking(|| match neighbour(&client, &wanted) {
            Some(known) if known == link => Ok(()),
            known => Err(format!("the client knows {wanted} as {known:?}, and not as {link}")),
        });
    }
}
