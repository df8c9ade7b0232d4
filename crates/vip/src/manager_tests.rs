//! What is decided, with an executor that records what it is told. What the kernel makes of it is tested in `tests/`.

use super::*;
use crate::MARK;
use std::fs::File;

const DEADLINE: Boot = Boot::from_nanos(13_500_000_000);
const START: Boot = Boot::from_nanos(0);

/// One interface with addresses, and a list of what was done to it.
#[derive(Default)]
struct Recording {
    has: Vec<PresentAddress>,
    done: Vec<String>,
    is_claimed: bool,
    refuses: Option<io::ErrorKind>,
}

impl Executor for Recording {
    fn link(&mut self, name: &str) -> io::Result<Option<Link>> {
        let address = Some([2, 0, 0, 0, 0, 1]);
        let link = Link { index: 7, name: name.to_owned(), address, is_up: true, forwards: false };
        Ok((name == "eth0").then_some(link))
    }

    fn links(&mut self) -> io::Result<Vec<String>> {
        Ok(vec!["lo".to_owned(), "eth0".to_owned()])
    }

    fn addresses(&mut self, _: &Link) -> io::Result<(Vec<PresentAddress>, bool)> {
        Ok((self.has.clone(), true))
    }

    fn set(&mut self, _: &Link, address: &VirtualAddress, how: Setting) -> io::Result<()> {
        if let Some(kind) = self.refuses {
            return Err(kind.into());
        }
        let Setting { lifetime_s, with_route, is_new } = how;
        self.done.push(format!("set for {lifetime_s} s, new: {is_new}, route: {with_route}"));
        self.has.retain(|found| found.address != address.address());
        self.has.push(ours(address));
        Ok(())
    }

    fn remove(&mut self, _: &Link, address: &VirtualAddress) -> io::Result<bool> {
        self.done.push("remove".to_owned());
        let before = self.has.len();
        self.has.retain(|found| (found.address, found.prefix) != (address.address(), address.prefix()));
        Ok(self.has.len() < before)
    }

    fn prepare_sending(&mut self, _: &Link) -> io::Result<()> {
        Ok(())
    }

    fn send(&mut self, _: &Link, frame: &[u8]) -> io::Result<()> {
        let said = arp::parse(frame).map(|said| format!("{:?}", said.operation));
        self.done.push(said.unwrap_or_else(|| "Advertisement".to_owned()));
        Ok(())
    }

    fn claim(&mut self, _: &VirtualAddress) -> io::Result<Option<OwnedFd>> {
        if self.is_claimed { Ok(None) } else { Ok(Some(File::open("/dev/null")?.into())) }
    }
}

fn address() -> VirtualAddress {
    "10.0.0.9/24@eth0".parse().unwrap()
}

fn ours(address: &VirtualAddress) -> PresentAddress {
    let (address, prefix) = (address.address(), address.prefix());
    PresentAddress { address, prefix, is_permanent: false, mark: Some(MARK) }
}

fn manager(has: Vec<PresentAddress>) -> Manager<Recording> {
    Manager::new(address(), Recording { has, ..Recording::default() })
}

fn at(seconds: u64) -> Boot {
    START + Duration::from_secs(seconds)
}

fn done(manager: &mut Manager<Recording>) -> Vec<String> {
    std::mem::take(&mut manager.executor.done)
}

#[test]
fn an_acquired_address_is_set_and_announced_and_a_released_one_is_removed() {
    let mut manager = manager(Vec::new());
    assert_eq!(manager.cidr(), "10.0.0.9/24");
    assert!(!manager.is_acquired().unwrap());
    manager.acquire(START, DEADLINE).unwrap();
    assert!(manager.is_acquired().unwrap());
    assert_eq!(done(&mut manager), ["set for 12 s, new: true, route: true", "Request", "Reply"]);
    manager.release().unwrap();
    assert!(!manager.is_acquired().unwrap());
    assert_eq!(done(&mut manager), ["remove"]);
    manager.release().unwrap();
    assert!(done(&mut manager).is_empty(), "what is not held is not removed");
}

#[test]
fn each_renewal_moves_the_lifetime_and_announces_nothing() {
    let mut manager = manager(Vec::new());
    manager.acquire(START, DEADLINE).unwrap();
    done(&mut manager);
    manager.extend(at(5), DEADLINE + Duration::from_secs(5)).unwrap();
    assert_eq!(done(&mut manager), ["set for 12 s, new: false, route: true"]);
    assert!(matches!(manager.extend(at(30), DEADLINE), Err(VipError::TooLate)));
    assert!(done(&mut manager).is_empty());
}

#[test]
fn the_route_of_a_network_that_the_host_has_is_left_alone() {
    let own =
        PresentAddress { address: "10.0.0.1".parse().unwrap(), prefix: 24, is_permanent: true, mark: None };
    let mut manager = manager(vec![own]);
    manager.acquire(START, DEADLINE).unwrap();
    assert_eq!(done(&mut manager)[0], "set for 12 s, new: true, route: false");
    manager.extend(at(1), DEADLINE).unwrap();
    assert_eq!(done(&mut manager), ["set for 11 s, new: false, route: false"]);
}

#[test]
fn announcements_follow_their_schedule() {
    let mut manager = manager(Vec::new());
    assert_eq!(manager.due(), None);
    manager.acquire(START, DEADLINE).unwrap();
    done(&mut manager);
    assert_eq!(manager.due(), Some(START + announcements::FIRST[1]));
    manager.act(START);
    assert!(done(&mut manager).is_empty(), "it is not due yet");
    manager.act(START + announcements::FIRST[1]);
    assert_eq!(done(&mut manager), ["Request", "Reply"]);
    manager.act(at(6));
    assert_eq!(done(&mut manager), ["Request", "Reply"], "those of a pause are one");
    assert_eq!(manager.due(), Some(at(35)));
}

#[test]
fn somebody_else_s_address_is_neither_taken_nor_removed() {
    let permanent = PresentAddress { is_permanent: true, ..ours(&address()) };
    let foreign = PresentAddress { mark: None, ..ours(&address()) };
    let other_prefix = PresentAddress { prefix: 32, ..ours(&address()) };
    for (found, said) in
        [(permanent, "without a lifetime"), (foreign, "another program"), (other_prefix, "10.0.0.9/32")]
    {
        let mut manager = manager(vec![found]);
        for error in [manager.check().unwrap_err(), manager.acquire(START, DEADLINE).unwrap_err()] {
            assert!(error.to_string().contains(said), "{error}");
        }
        assert!(!manager.remove_for_another().unwrap());
        assert_eq!(manager.executor.has, [found]);
        assert!(done(&mut manager).is_empty());
    }
}

#[test]
fn a_leftover_is_swept_unless_a_living_process_has_it() {
    let mut manager = manager(vec![ours(&address())]);
    manager.executor.is_claimed = true;
    assert!(!manager.sweep().unwrap());
    assert!(done(&mut manager).is_empty());
    manager.executor.is_claimed = false;
    assert!(manager.sweep().unwrap());
    assert!(!manager.is_acquired().unwrap());
}

#[test]
fn an_address_left_by_a_crash_is_taken_over_by_the_next_leadership() {
    let mut manager = manager(vec![ours(&address())]);
    manager.acquire(START, DEADLINE).unwrap();
    assert_eq!(done(&mut manager)[0], "set for 12 s, new: false, route: true");
}

#[test]
fn an_address_that_is_removed_comes_back_at_once_and_then_once_a_second() {
    let mut manager = manager(Vec::new());
    manager.acquire(START, DEADLINE).unwrap();
    done(&mut manager);
    assert!(matches!(manager.removed(at(1)), Some(Happening::Restored)));
    assert_eq!(done(&mut manager), ["set for 11 s, new: false, route: true", "Request", "Reply"]);
    let soon = at(1) + Duration::from_millis(1);
    assert!(manager.removed(soon).is_none());
    assert!(done(&mut manager).is_empty());
    assert_eq!(manager.due(), Some(at(2)));
    assert!(matches!(manager.act(at(2)), Some(Happening::Restored)));
}

#[test]
fn what_cannot_be_restored_is_reported_and_tried_again() {
    let mut manager = manager(Vec::new());
    manager.acquire(START, DEADLINE).unwrap();
    manager.executor.refuses = Some(io::ErrorKind::PermissionDenied);
    assert!(matches!(
        manager.removed(at(1)),
        Some(Happening::NotRestored(VipError::Denied("CAP_NET_ADMIN")))
    ));
    assert_eq!(manager.due(), Some(at(2)));
    manager.executor.refuses = None;
    assert!(matches!(manager.act(at(2)), Some(Happening::Restored)));
}

#[test]
fn an_address_whose_lifetime_ended_comes_back_only_with_a_renewal() {
    let mut manager = manager(Vec::new());
    manager.acquire(START, DEADLINE).unwrap();
    done(&mut manager);
    assert!(manager.removed(at(12)).is_none());
    assert_eq!(manager.due(), None);
    assert!(manager.act(at(13)).is_none());
    assert!(done(&mut manager).is_empty());
    manager.extend(at(13), at(26)).unwrap();
    assert_eq!(done(&mut manager), ["set for 12 s, new: false, route: true", "Request", "Reply"]);
}

#[test]
fn nothing_is_set_under_a_leadership_that_is_nearly_over() {
    let mut manager = manager(Vec::new());
    assert!(matches!(manager.acquire(at(12), DEADLINE), Err(VipError::TooLate)));
    assert!(done(&mut manager).is_empty());
}

#[test]
fn an_unknown_interface_is_named_with_those_there_are() {
    let mut manager = Manager::new("10.0.0.9/24@eth9".parse().unwrap(), Recording::default());
    let error = manager.check().unwrap_err().to_string();
    assert_eq!(error, "there is no interface eth9; there are lo, eth0");
}

#[test]
fn missing_rights_are_named_with_what_to_do() {
    for capability in [CAP_NET_ADMIN, CAP_NET_RAW] {
        let error = VipError::of_kernel("x", capability, io::ErrorKind::PermissionDenied.into()).to_string();
        assert!(error.contains(&format!("{capability} is missing")) && error.contains("setcap"), "{error}");
    }
}
