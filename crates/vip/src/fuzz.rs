//! What fuzzing asks of the parsers of this crate: frames of neighbours, and addresses as they are written. Each function takes any bytes, and
//! panics where a promise is broken; `fuzz` has the list. Those with a sibling `…_examples` read bytes that nobody writes by hand.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::arp::{self, LinkAddress, Operation};
use crate::{VirtualAddress, ndp};

const OWNER: LinkAddress = [2, 0, 0, 0, 0, 9];

/// An Ethernet frame that may carry ARP.
pub fn arp(bytes: &[u8]) {
    let Some(said) = arp::parse(bytes) else { return };
    let (owner, address) = said.sender;
    let ours = arp::gratuitous(said.operation, owner, address);
    let read = arp::parse(&ours).expect("a frame of ours");
    assert_eq!((read.operation, read.sender, read.target.1), (said.operation, said.sender, address));
    // The message itself is as it was, where it is the announcement of an owner.
    if said == read {
        assert_eq!(bytes[12..ours.len()], ours[12..]);
    }
}

/// Both announcements.
pub fn arp_examples() -> Vec<Vec<u8>> {
    let address = Ipv4Addr::new(10, 7, 0, 9);
    [Operation::Request, Operation::Reply]
        .map(|operation| arp::gratuitous(operation, OWNER, address))
        .to_vec()
}

/// An Ethernet frame that may carry a neighbour advertisement. Damage is noticed.
pub fn ndp(bytes: &[u8]) {
    let Some(said) = ndp::parse(bytes) else { return };
    let ours = ndp::unsolicited(said.owner, said.target, said.is_router);
    let read = ndp::parse(&ours).expect("a frame of ours");
    assert_eq!((read.owner, read.target, read.is_router), (said.owner, said.target, said.is_router));
    let mut damaged = bytes.to_vec();
    for at in 54..ours.len() {
        damaged[at] ^= 1;
        assert_eq!(ndp::parse(&damaged), None, "byte {at}");
        damaged[at] ^= 1;
    }
}

/// Advertisements of a host and of a router.
pub fn ndp_examples() -> Vec<Vec<u8>> {
    let address = Ipv6Addr::new(0xfd00, 7, 0, 0, 0, 0, 0, 9);
    [false, true].map(|is_router| ndp::unsolicited(OWNER, address, is_router)).to_vec()
}

/// `ADDR/PREFIX@IFACE`.
pub fn virtual_address(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(address) = text.parse::<VirtualAddress>() else { return };
    assert!(address.prefix() > 0 && !address.interface().contains('/') && address.interface().len() <= 15);
    assert!(!address.address().is_unspecified() && !address.address().is_multicast());
    assert_eq!(address.to_string().parse(), Ok(address));
}
