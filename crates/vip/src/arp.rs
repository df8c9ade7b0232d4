//! Gratuitous ARP (RFC 826, RFC 5227): frames that tell neighbours which link address has an IPv4 address.
//!
//! Both a request and a reply are sent: some systems update their caches on one of them only.

use std::net::Ipv4Addr;

/// The address of one end of an Ethernet.
pub type LinkAddress = [u8; 6];

/// Everybody on the link.
const BROADCAST: LinkAddress = [0xff; 6];
/// The type of an Ethernet frame that carries ARP.
const ETHERTYPE: [u8; 2] = [0x08, 0x06];
/// Ethernet; IPv4; the lengths of their addresses.
const ETHERNET_AND_IPV4: [u8; 6] = [0, 1, 0x08, 0x00, 6, 4];
const LENGTH: usize = 42;

/// Which of the two kinds of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// "Who has this address?", asked by its owner.
    Request,
    /// "I have it", which nobody asked.
    Reply,
}

/// What an ARP frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// Question or answer.
    pub operation: Operation,
    /// Who says it.
    pub sender: (LinkAddress, Ipv4Addr),
    /// About whom.
    pub target: (LinkAddress, Ipv4Addr),
}

/// The announcement that `owner` has `address`, as a whole Ethernet frame to everybody.
pub fn gratuitous(operation: Operation, owner: LinkAddress, address: Ipv4Addr) -> Vec<u8> {
    let (code, target) = match operation {
        Operation::Request => (1, [0; 6]),
        Operation::Reply => (2, owner),
    };
    let mut frame = Vec::with_capacity(LENGTH);
    frame.extend(BROADCAST);
    frame.extend(owner);
    frame.extend(ETHERTYPE);
    frame.extend(ETHERNET_AND_IPV4);
    frame.extend([0, code]);
    frame.extend(owner);
    frame.extend(address.octets());
    frame.extend(target);
    frame.extend(address.octets());
    frame
}

/// Reads an Ethernet frame that carries ARP for IPv4; `None` if it is anything else.
pub fn parse(frame: &[u8]) -> Option<Arp> {
    // An Ethernet pads short frames, so there may be more.
    let (header, message) = frame.get(..LENGTH)?.split_at(14);
    let message = message.strip_prefix(&ETHERNET_AND_IPV4).filter(|_| header[12..] == ETHERTYPE)?;
    let operation = match message[..2] {
        [0, 1] => Operation::Request,
        [0, 2] => Operation::Reply,
        _ => return None,
    };
    let pair = |at: usize| -> Option<(LinkAddress, Ipv4Addr)> {
        let (link, address) = message[at..at + 10].split_at(6);
        Some((link.try_into().ok()?, Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?)))
    };
    Some(Arp { operation, sender: pair(2)?, target: pair(12)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: LinkAddress = [2, 0, 0, 0, 0, 9];
    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 9);

    #[test]
    fn a_request_asks_for_the_own_address() {
        let frame = gratuitous(Operation::Request, OWNER, ADDRESS);
        assert_eq!(frame[..14], [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 9, 8, 6]);
        assert_eq!(frame[14..22], [0, 1, 8, 0, 6, 4, 0, 1]);
        assert_eq!(frame[22..], [2, 0, 0, 0, 0, 9, 10, 7, 0, 9, 0, 0, 0, 0, 0, 0, 10, 7, 0, 9]);
        let said = parse(&frame).unwrap();
        assert_eq!((said.operation, said.sender), (Operation::Request, (OWNER, ADDRESS)));
        assert_eq!(said.target, ([0; 6], ADDRESS));
    }

    #[test]
    fn a_reply_names_its_owner_as_the_target_too() {
        let said = parse(&gratuitous(Operation::Reply, OWNER, ADDRESS)).unwrap();
        assert_eq!(
            (said.operation, said.sender, said.target),
            (Operation::Reply, (OWNER, ADDRESS), (OWNER, ADDRESS))
        );
    }

    #[test]
    fn padded_frames_are_read_and_others_are_not() {
        let mut frame = gratuitous(Operation::Request, OWNER, ADDRESS);
        frame.resize(60, 0);
        assert!(parse(&frame).is_some());
        for length in 0..LENGTH {
            assert_eq!(parse(&frame[..length]), None);
        }
        for (at, byte) in [(12, 0x86), (15, 2), (18, 8), (21, 3)] {
            let mut other = frame.clone();
            other[at] = byte;
            assert_eq!(parse(&other), None, "byte {at}");
        }
    }
}
