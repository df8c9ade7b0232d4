//! Unsolicited neighbour advertisements (RFC 4861, section 7.2.6): frames that tell neighbours which link address has an IPv6 address.

use crate::arp::LinkAddress;
use std::net::Ipv6Addr;

/// Every host on the link, and the link address that such packets go to.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_LINK: LinkAddress = [0x33, 0x33, 0, 0, 0, 1];
/// The type of an Ethernet frame that carries IPv6.
const ETHERTYPE: [u8; 2] = [0x86, 0xdd];
const ICMPV6: u8 = 58;
const ADVERTISEMENT: u8 = 136;
/// A packet with fewer hops left has passed a router, and nobody believes it.
const HOPS: u8 = 255;
const ROUTER: u8 = 0x80;
const OVERRIDE: u8 = 0x20;
const TARGET_LINK_ADDRESS: [u8; 2] = [2, 1];
const HEADERS: usize = 14 + 40;
/// Type, code, checksum, flags, target, and one option of eight bytes.
const MESSAGE: usize = 32;

/// What a neighbour advertisement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// The address that it is about.
    pub target: Ipv6Addr,
    /// The link address that has it.
    pub owner: LinkAddress,
    /// Whether the owner forwards packets for others.
    pub is_router: bool,
    /// Whether it replaces what neighbours know.
    pub overrides: bool,
}

/// The announcement that `owner` has `address`, as a whole Ethernet frame to every host.
///
/// `is_router` must be true where the owner forwards packets: neighbours that use it as a router would stop doing so.
pub fn unsolicited(owner: LinkAddress, address: Ipv6Addr, is_router: bool) -> Vec<u8> {
    let mut message = Vec::with_capacity(MESSAGE);
    message.extend([ADVERTISEMENT, 0, 0, 0]);
    message.extend([OVERRIDE | if is_router { ROUTER } else { 0 }, 0, 0, 0]);
    message.extend(address.octets());
    message.extend(TARGET_LINK_ADDRESS);
    message.extend(owner);
    let sum = checksum(address, ALL_NODES, &message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());

    let mut frame = Vec::with_capacity(HEADERS + MESSAGE);
    frame.extend(ALL_NODES_LINK);
    frame.extend(owner);
    frame.extend(ETHERTYPE);
    frame.extend([0x60, 0, 0, 0, 0, MESSAGE as u8, ICMPV6, HOPS]);
    frame.extend(address.octets());
    frame.extend(ALL_NODES.octets());
    frame.extend(message);
    frame
}

/// Reads an Ethernet frame that carries a neighbour advertisement with a link address; `None` if it is anything else, or damaged.
pub fn parse(frame: &[u8]) -> Option<Advertisement> {
    let (headers, message) = frame.get(..HEADERS + MESSAGE)?.split_at(HEADERS);
    let packet = &headers[14..];
    if headers[12..14] != ETHERTYPE || packet[0] >> 4 != 6 || packet[4..8] != [0, MESSAGE as u8, ICMPV6, HOPS]
    {
        return None;
    }
    let address = |bytes: &[u8]| Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?));
    let (from, to) = (address(&packet[8..24])?, address(&packet[24..40])?);
    if message[..2] != [ADVERTISEMENT, 0] || checksum(from, to, message) != 0 {
        return None;
    }
    let owner = message[24..].strip_prefix(&TARGET_LINK_ADDRESS)?.try_into().ok()?;
    Some(Advertisement {
        target: address(&message[8..24])?,
        owner,
        is_router: message[4] & ROUTER != 0,
        overrides: message[4] & OVERRIDE != 0,
    })
}

/// The checksum of an ICMPv6 message between these two (RFC 8200, section 8.1); zero over a message that contains its own.
pub fn checksum(from: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> u16 {
    let length = (message.len() as u32).to_be_bytes();
    let pseudo = [&from.octets()[..], &to.octets()[..], &length, &[0, 0, 0, ICMPV6]];
    let words = |bytes: &[u8]| -> u64 {
        bytes
            .chunks(2)
            .map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)))
            .sum()
    };
    let mut sum = pseudo.into_iter().chain([message]).map(words).sum::<u64>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: LinkAddress = [2, 0, 0, 0, 0, 9];
    const ADDRESS: Ipv6Addr = Ipv6Addr::new(0xfd00, 7, 0, 0, 0, 0, 0, 9);

    #[test]
    fn an_advertisement_overrides_what_neighbours_know() {
        let said = parse(&unsolicited(OWNER, ADDRESS, false)).unwrap();
        let expected = Advertisement { target: ADDRESS, owner: OWNER, is_router: false, overrides: true };
        assert_eq!(said, expected);
        assert!(parse(&unsolicited(OWNER, ADDRESS, true)).unwrap().is_router);
    }

    #[test]
    fn the_frame_goes_to_every_host_and_no_router_passes_it_on() {
        let frame = unsolicited(OWNER, ADDRESS, false);
        assert_eq!(frame.len(), HEADERS + MESSAGE);
        assert_eq!(frame[..6], ALL_NODES_LINK);
        assert_eq!(frame[6..12], OWNER);
        assert_eq!(frame[21], 255, "hop limit");
        assert_eq!(frame[22..38], ADDRESS.octets());
        assert_eq!(frame[38..54], ALL_NODES.octets());
    }

    #[test]
    fn the_checksum_is_the_one_computed_by_hand() {
        let message = [128, 0, 0, 0, 0x12, 0x34, 0, 1];
        let (one, length) = (1_u32, 8_u32);
        // 1 + 1 from the addresses, the length, the protocol, and the words of the message.
        let sum = one + one + length + 58 + 0x8000 + 0x1234 + 1;
        assert_eq!(checksum(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, &message), !(sum as u16));
    }

    #[test]
    fn an_odd_message_is_padded_and_carries_are_folded() {
        let all = [0xff; 7];
        let with_zero = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0];
        let sum = |message: &[u8]| checksum(ADDRESS, ALL_NODES, message);
        // The length differs by one, and the checksum by minus that.
        assert_eq!(sum(&all), sum(&with_zero).wrapping_add(1));
    }

    #[test]
    fn damage_is_noticed() {
        let frame = unsolicited(OWNER, ADDRESS, false);
        for at in 12..frame.len() {
            let mut damaged = frame.clone();
            damaged[at] ^= 1;
            // The traffic class and the flow label, which the checksum does not cover, may differ.
            let covered = !(15..18).contains(&at) && at != 14;
            assert_eq!(parse(&damaged).is_none(), covered, "byte {at}");
        }
        for length in 0..frame.len() {
            assert_eq!(parse(&frame[..length]), None);
        }
    }
}
