//! A socket that nobody reads, or that is not there: renewals do not wait for it, and neither does the end.

use std::process::Command;
use std::time::Duration;

use bellwether_tests::notify::ServiceManager;
use bellwether_tests::{Candidate, bellwether};
use rustix::process::Signal;

use crate::{leader, store_in, temporary};

#[test]
fn a_socket_that_is_full_delays_neither_renewals_nor_the_end() {
    let directory = temporary();
    let manager = ServiceManager::in_directory(directory.path());
    // Far more pings than wait in a socket (net.unix.max_dgram_qlen, 512 at most on usual systems).
    let often = Some(Duration::from_millis(2));
    let mut a = leader(directory.path(), &manager, often, &["--ttl", "3s", "--renew", "200ms"]);
    let wait = a.wait("lost", Duration::from_secs(3));
    assert!(wait.is_none(), "{wait:?}");
    assert!(!a.said.iter().any(|line| line.event() == "danger"), "{:?}", a.said);
    a.signal(Signal::TERM);
    let ended = a.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let warnings = ended.stderr.lines().filter(|line| line.contains("systemd could not be told")).count();
    assert_eq!(warnings, 1, "{}", ended.stderr);
}

#[test]
fn an_address_that_leads_nowhere_is_warned_of_once_and_changes_nothing() {
    let directory = temporary();
    let nowhere = directory.path().join("nobody");
    for (address, warning) in [
        (nowhere.to_str().expect("a plain name"), "systemd could not be told"),
        ("vsock:2:1234", "cannot be used"),
        ("@", "systemd could not be told"),
    ] {
        let mut command = Command::new(bellwether());
        command.args(["--backend", &store_in(directory.path()), "--id", "a", "run", "job", "--events"]);
        command.env("NOTIFY_SOCKET", address).env("WATCHDOG_USEC", "100000");
        let mut a = Candidate::start(command);
        a.expect("acquired");
        a.signal(Signal::TERM);
        let ended = a.ended();
        assert_eq!(ended.code, Some(0), "{address}: {}", ended.stderr);
        let warnings = ended.stderr.lines().filter(|line| line.contains(warning)).count();
        assert_eq!(warnings, 1, "{address}: {}", ended.stderr);
    }
}
