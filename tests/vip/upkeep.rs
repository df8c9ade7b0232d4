//! An address while its leader leads, and on a host that does not lead.

use bellwether_tests::until_blocking;
use rustix::process::Signal;

use crate::hosts::{Hosts, Kind, V4, ip, shown};

#[test]
fn the_address_is_there_before_the_command_and_until_it_has_ended() {
    let Some(hosts) = Hosts::new(V4) else { return };
    let script = "ip -oneline address show dev eth0 | grep -q ' 10.7.0.100/24 ' || exit 9; exit 3";
    let address = hosts.address.to_string();
    let arguments = ["run", "vip", "--ttl", "6s", "--vip", &address, "--", "/bin/sh", "-c", script];
    let output = bellwether_tests::run_to_end(hosts.command(0, &arguments));
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(!hosts.has_it(0));
}

#[test]
fn a_signal_ends_an_address_without_a_command() {
    let Some(hosts) = Hosts::new(V4) else { return };
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut candidate = hosts.candidate(0, Kind::AddressAlone);
        hosts.until_held(0);
        candidate.signal(signal);
        assert_eq!(candidate.ended().code, Some(0), "{signal:?}");
        assert!(!hosts.has_it(0));
    }
}

#[test]
fn renewals_keep_the_address_for_longer_than_its_lifetime() {
    let Some(hosts) = Hosts::new(V4) else { return };
    let mut candidate = hosts.candidate(0, Kind::AddressAlone);
    let deadline = candidate.expect("acquired").instant("deadline_boot_ns").expect("an instant");
    hosts.until_held(0);
    until_blocking(|| {
        assert!(hosts.has_it(0), "it went away in between");
        if bellwether_deadman::boot_now() > deadline { Ok(()) } else { Err("the first deadline is not over") }
    });
}

#[test]
fn an_address_that_somebody_removes_is_restored_and_reported() {
    let Some(hosts) = Hosts::new(V4) else { return };
    let mut candidate = hosts.candidate(0, Kind::AddressAlone);
    hosts.until_held(0);
    ip(&hosts.hosts[0], "address delete 10.7.0.100/24 dev eth0");
    hosts.until_held(0);
    candidate.signal(Signal::TERM);
    let ended = candidate.ended();
    assert!(ended.stderr.contains("was removed from the interface by somebody else"), "{}", ended.stderr);
}

#[test]
fn a_candidate_that_starts_sweeps_what_a_crash_left_even_if_it_does_not_lead() {
    let Some(hosts) = Hosts::new(V4) else { return };
    let mut one = hosts.candidate(0, Kind::AddressAlone);
    hosts.until_held(0);
    // All at once, as an out-of-memory killer or a container's end may do it: nobody is left to remove the address.
    for process in hosts.processes(&one, "") {
        process.signal(Signal::STOP);
    }
    for process in hosts.processes(&one, "") {
        process.signal(Signal::KILL);
    }
    one.kill();
    let mut two = hosts.candidate(1, Kind::AddressAlone);
    two.expect("acquired");
    let left = shown(&hosts.hosts[0], &hosts.address);
    let mut again = hosts.candidate(0, Kind::AddressAlone);
    again.joined();
    assert!(!hosts.has_it(0), "{left:?} was not swept");
    hosts.until_reached(1);
}
