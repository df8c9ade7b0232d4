//! Everything that can happen to a leader's processes.

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use bellwether_tests::{Candidate, run_to_end};
use rustix::process::Signal;

use crate::hosts::{Hosts, Kind, V4, V6};
use crate::sole_holder::SoleHolder;

/// What happens to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    SupervisorKilled,
    GuardKilled,
    BothKilled,
    /// The guard, and whatever it made.
    AllButSupervisorKilled,
    SupervisorStopped,
    AllStopped,
    Handover,
}

impl Mishap {
    /// Does it to the leader, and returns when.
    fn happen(self, hosts: &Hosts, leader: &mut Candidate) -> Boot {
        let guard = || {
            let found = hosts.processes(leader, "bellw-guard");
            found.into_iter().next().expect("a leader with an address has a guard")
        };
        match self {
            Mishap::SupervisorKilled => leader.kill(),
            Mishap::GuardKilled => {
                let (guard, at) = (guard(), boot_now());
                guard.signal(Signal::KILL);
                at
            }
            Mishap::BothKilled => {
                let guard = guard();
                let at = leader.signal(Signal::KILL);
                guard.signal(Signal::KILL);
                at
            }
            Mishap::AllButSupervisorKilled => {
                let top = leader.pid().cast_signed();
                let others = hosts.processes(leader, "").into_iter().filter(|process| process.pid != top);
                // The guard first, which would otherwise notice.
                let mut others: Vec<_> = others.collect();
                others.sort_by_key(|process| process.name != "bellw-guard");
                let at = boot_now();
                for process in others {
                    process.signal(Signal::KILL);
                }
                at
            }
            Mishap::SupervisorStopped => leader.signal(Signal::STOP),
            Mishap::AllStopped => {
                let (all, at) = (hosts.processes(leader, ""), boot_now());
                for process in all {
                    process.signal(Signal::STOP);
                }
                at
            }
            Mishap::Handover => {
                let at = boot_now();
                let output = run_to_end(hosts.command(0, &["step-down", "vip"]));
                assert!(output.status.success(), "{output:?}");
                at
            }
        }
    }
}

/// From one leader to the next.
fn take_over(address: &str, kind: Kind, mishap: Mishap) {
    if let Some(hosts) = Hosts::new(address) {
        take_over_on(&hosts, kind, mishap);
    }
}

/// Likewise, on the store of these hosts.
pub(crate) fn take_over_on(hosts: &Hosts, kind: Kind, mishap: Mishap) {
    let judge = SoleHolder::watch(hosts);
    let mut one = hosts.candidate(0, kind);
    one.expect("acquired");
    hosts.until_held(0);
    hosts.until_reached(0);
    hosts.until_neighbour_is(0);
    let mut two = hosts.candidate(1, kind);
    two.joined();
    let since = mishap.happen(hosts, &mut one);
    two.expect("acquired");
    hosts.until_held(1);
    // Nothing was sent since: it is the announcement that the client learned it from.
    hosts.until_neighbour_is(1);
    let gap = hosts.until_reached(1).since(since);
    let store = hosts.backend.split(':').next().unwrap_or_default();
    println!("{store}, {mishap:?} ({kind:?}): the client reached the next leader after {gap:?}");
    assert!(!hosts.has_it(0));
    assert_eq!(judge.end(), 0, "both hosts had the address");
}

#[test]
fn a_killed_supervisor_is_followed_by_the_other_host() {
    take_over(V4, Kind::AddressAlone, Mishap::SupervisorKilled);
}

#[test]
fn a_killed_supervisor_is_followed_by_the_other_host_with_ipv6() {
    take_over(V6, Kind::AddressAlone, Mishap::SupervisorKilled);
}

#[test]
fn a_killed_supervisor_without_a_namespace() {
    take_over(V4, Kind::CommandWithoutNamespace, Mishap::SupervisorKilled);
}

#[test]
fn a_killed_guard_is_followed_by_the_other_host() {
    take_over(V4, Kind::AddressAlone, Mishap::GuardKilled);
}

#[test]
fn a_killed_guard_without_a_namespace() {
    take_over(V4, Kind::CommandWithoutNamespace, Mishap::GuardKilled);
}

#[test]
fn supervisor_and_guard_killed_together_leave_no_address() {
    take_over(V4, Kind::AddressAlone, Mishap::BothKilled);
}

#[test]
fn supervisor_and_guard_killed_together_leave_no_ipv6_address() {
    take_over(V6, Kind::AddressAlone, Mishap::BothKilled);
}

#[test]
fn supervisor_and_guard_killed_together_without_a_namespace() {
    take_over(V4, Kind::CommandWithoutNamespace, Mishap::BothKilled);
}

#[test]
fn a_supervisor_that_is_left_alone_removes_the_address_before_it_steps_down() {
    take_over(V4, Kind::AddressAlone, Mishap::AllButSupervisorKilled);
}

#[test]
fn a_supervisor_that_is_left_alone_without_a_namespace() {
    take_over(V6, Kind::CommandWithoutNamespace, Mishap::AllButSupervisorKilled);
}

#[test]
fn a_stopped_supervisor_loses_the_address_before_its_lease_ends() {
    take_over(V4, Kind::AddressAlone, Mishap::SupervisorStopped);
}

#[test]
fn when_every_process_is_stopped_the_kernel_removes_the_address() {
    take_over(V4, Kind::AddressAlone, Mishap::AllStopped);
}

#[test]
fn when_every_process_is_stopped_the_kernel_removes_the_ipv6_address() {
    take_over(V6, Kind::CommandWithoutNamespace, Mishap::AllStopped);
}

#[test]
fn a_handover_moves_the_address() {
    take_over(V4, Kind::AddressAlone, Mishap::Handover);
}

#[test]
fn a_handover_moves_an_ipv6_address_and_stops_the_command_first() {
    take_over(V6, Kind::CommandWithoutNamespace, Mishap::Handover);
}
