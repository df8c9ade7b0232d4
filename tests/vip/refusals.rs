//! What `--vip` refuses before the candidate competes, with what to do.

use bellwether_tests::{Candidate, run_to_end};

use crate::hosts::{Hosts, V4, ip};

/// The exit code and the last line of a candidate that does not get to compete.
fn refused(hosts: &Hosts, arguments: &[&str]) -> (Option<i32>, String) {
    let output = run_to_end(hosts.command(0, arguments));
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn a_ttl_below_six_seconds_and_bad_addresses_are_bad_usage() {
    let Some(hosts) = Hosts::new(V4) else { return };
    let (code, said) = refused(&hosts, &["run", "vip", "--ttl", "5s", "--vip", V4]);
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("use --ttl 6s or more"), "{said}");
    for (bad, sentence) in [("10.7.0.100@eth0", "ADDR/PREFIX@IFACE"), ("10.7.0.100/33@eth0", "from 1 to 32")]
    {
        let (code, said) = refused(&hosts, &["run", "vip", "--vip", bad]);
        assert_eq!(code, Some(64), "{said}");
        assert!(said.contains(sentence), "{said}");
    }
}

#[test]
fn an_unknown_interface_and_an_address_of_somebody_else_are_a_misconfigured_host() {
    let Some(hosts) = Hosts::new(V4) else { return };
    let (code, said) = refused(&hosts, &["run", "vip", "--vip", "10.7.0.100/24@eth9"]);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("there is no interface eth9; there are lo, eth0"), "{said}");
    ip(&hosts.hosts[0], "address add 10.7.0.100/24 dev eth0");
    let (code, said) = refused(&hosts, &["run", "vip", "--vip", V4]);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("ip address delete 10.7.0.100/24 dev eth0"), "{said}");
    assert!(hosts.has_it(0), "it was removed");
}

#[test]
fn missing_rights_are_named() {
    let Some(hosts) = Hosts::new(V4) else { return };
    for (kept, missing) in [("-all", "CAP_NET_ADMIN"), ("-all,+net_admin", "CAP_NET_RAW")] {
        let mut command = hosts.hosts[0].command("setpriv".as_ref());
        // Bounding and inheritable alone: root would get all of the bounding set back.
        command.args(["--bounding-set", kept, "--inh-caps", "-all"]).arg(bellwether_tests::bellwether());
        command.env("BELLWETHER_BACKEND", &hosts.backend).args(["run", "vip", "--vip", V4]);
        let output = run_to_end(command);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(77), "{said}");
        assert!(said.contains(&format!("{missing} is missing")), "{said}");
    }
}

#[test]
fn a_host_that_loses_its_interface_stays_out_of_the_election() {
    let Some(hosts) = Hosts::new(V4) else { return };
    let mut candidate: Candidate = hosts.candidate(0, crate::hosts::Kind::AddressAlone);
    candidate.expect("acquired");
    hosts.until_held(0);
    let mut two = hosts.candidate(1, crate::hosts::Kind::AddressAlone);
    two.joined();
    ip(&hosts.hosts[0], "link delete eth0");
    let output = run_to_end(hosts.command(1, &["step-down", "vip", "--to", "b"]));
    assert!(output.status.success(), "{output:?}");
    two.expect("acquired");
    hosts.until_held(1);
}
