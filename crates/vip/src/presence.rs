//! Whose an address is that an interface already has.
//!
//! Bellwether always sets a lifetime, and a mark that the kernel shows since Linux 5.18 (`IFA_PROTO`, `proto` in the output of `ip`).
//! What has no lifetime is part of the host's own configuration. What has a lifetime but not the mark comes from a DHCP client or the like;
//! only on kernels without marks does a lifetime have to do as evidence.

use crate::VirtualAddress;
use std::net::IpAddr;

/// The mark of addresses that Bellwether set: `ip address` shows it as `proto 0xb3`. The kernel uses 1 to 3 itself.
pub const MARK: u8 = 0xb3;

/// One address of an interface, as the kernel shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresentAddress {
    /// The address.
    pub address: IpAddr,
    /// Its prefix length.
    pub prefix: u8,
    /// Whether it has no lifetime.
    pub is_permanent: bool,
    /// The mark of whoever set it, if there is one.
    pub mark: Option<u8>,
}

/// Whether an interface has an address, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It does not have it.
    Absent,
    /// It has it, set by Bellwether: by this process or another one, now or before a crash.
    Ours,
    /// It has it for ever.
    Permanent,
    /// It has it for a while, set by another program.
    Foreign,
    /// It has the same address with this other prefix.
    OtherPrefix(u8),
}

/// Judges what an interface has. `marks_are_shown`: whether this kernel shows who set an address.
pub fn presence(wanted: &VirtualAddress, found: &[PresentAddress], marks_are_shown: bool) -> Presence {
    let mut same = found.iter().filter(|found| found.address == wanted.address());
    let exact = same.clone().find(|found| found.prefix == wanted.prefix());
    match (exact, same.next()) {
        (Some(found), _) if found.is_permanent => Presence::Permanent,
        (Some(found), _) if found.mark == Some(MARK) => Presence::Ours,
        (Some(found), _) if found.mark.is_none() && !marks_are_shown => Presence::Ours,
        (Some(_), _) => Presence::Foreign,
        (None, Some(other)) => Presence::OtherPrefix(other.prefix),
        (None, None) => Presence::Absent,
    }
}

/// Whether the interface has another address of the same network, whose route therefore must not be touched.
pub(crate) fn shares_network(wanted: &VirtualAddress, found: &[PresentAddress]) -> bool {
    let network = |address: IpAddr| -> u128 {
        match address {
            IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
            IpAddr::V6(v6) => v6.to_bits(),
        }
        .checked_shr(128 - u32::from(wanted.prefix()))
        .unwrap_or(0)
    };
    found.iter().any(|found| {
        found.address != wanted.address()
            && found.address.is_ipv4() == wanted.address().is_ipv4()
            && found.prefix == wanted.prefix()
            && network(found.address) == network(wanted.address())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> VirtualAddress {
        "10.0.0.9/24@eth0".parse().unwrap()
    }

    fn found(address: &str, prefix: u8, is_permanent: bool, mark: Option<u8>) -> PresentAddress {
        PresentAddress { address: address.parse().unwrap(), prefix, is_permanent, mark }
    }

    #[test]
    fn only_our_mark_on_exactly_this_address_makes_it_ours() {
        let of = |found: PresentAddress, shown| presence(&wanted(), &[found], shown);
        assert_eq!(of(found("10.0.0.9", 24, false, Some(MARK)), true), Presence::Ours);
        assert_eq!(of(found("10.0.0.9", 24, true, Some(MARK)), true), Presence::Permanent);
        assert_eq!(of(found("10.0.0.9", 24, true, None), false), Presence::Permanent);
        assert_eq!(of(found("10.0.0.9", 24, false, None), true), Presence::Foreign, "a DHCP client's");
        assert_eq!(of(found("10.0.0.9", 24, false, Some(2)), false), Presence::Foreign);
        assert_eq!(of(found("10.0.0.9", 24, false, None), false), Presence::Ours, "an old kernel");
        assert_eq!(of(found("10.0.0.9", 32, false, Some(MARK)), true), Presence::OtherPrefix(32));
        assert_eq!(of(found("10.0.0.8", 24, false, Some(MARK)), true), Presence::Absent);
        assert_eq!(presence(&wanted(), &[], true), Presence::Absent);
    }

    #[test]
    fn the_exact_address_counts_beside_one_with_another_prefix() {
        let both = [found("10.0.0.9", 32, true, None), found("10.0.0.9", 24, false, Some(MARK))];
        assert_eq!(presence(&wanted(), &both, true), Presence::Ours);
    }

    #[test]
    fn a_network_is_shared_with_another_address_of_the_same_prefix() {
        assert!(shares_network(&wanted(), &[found("10.0.0.1", 24, true, None)]));
        assert!(!shares_network(&wanted(), &[found("10.0.0.1", 16, true, None)]));
        assert!(!shares_network(&wanted(), &[found("10.0.1.1", 24, true, None)]));
        assert!(!shares_network(&wanted(), &[found("10.0.0.9", 24, true, None)]), "itself");
        let v6: VirtualAddress = "fd00::9/64@eth0".parse().unwrap();
        assert!(shares_network(&v6, &[found("fd00::1", 64, true, None)]));
        assert!(!shares_network(
            &v6,
            &[found("fd00:0:0:1::1", 64, true, None), found("10.0.0.1", 64, true, None)]
        ));
        let whole: VirtualAddress = "fd00::9/128@eth0".parse().unwrap();
        assert!(!shares_network(&whole, &[found("fd00::1", 128, true, None)]));
    }
}
