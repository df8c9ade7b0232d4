//! What can go wrong with an address, by meaning, with what to do about it.

use crate::{BadAddress, TTL_MIN, VirtualAddress};
use bellwether_election::Over;
use std::time::Duration;
use std::{fmt, io};

/// Why an address cannot be held.
#[derive(Debug)]
#[non_exhaustive]
pub enum VipError {
    /// It is not an address on an interface.
    Bad(BadAddress),
    /// Leases are too short for the kernel's lifetimes, which count whole seconds.
    TtlTooShort(Duration),
    /// There is no such interface; there are these.
    NoInterface(String, Vec<String>),
    /// The interface is switched off.
    InterfaceDown(String),
    /// This capability is missing.
    Denied(&'static str),
    /// Somebody else set the address, for ever.
    Permanent(VirtualAddress),
    /// Another program set the address, with a lifetime.
    Foreign(VirtualAddress),
    /// The interface has the address with this other prefix.
    OtherPrefix(VirtualAddress, u8),
    /// Too little of the leadership is left to set the address.
    TooLate,
    /// The leadership ended first.
    Over(Over),
    /// The store proves crashes, and nobody would remove the address before it does.
    NeedsGuard,
    /// The kernel refused this.
    Kernel(&'static str, io::Error),
}

impl VipError {
    /// The kernel's answer to an attempt to do this, which needs that capability.
    pub(crate) fn of_kernel(what: &'static str, capability: &'static str, error: io::Error) -> VipError {
        match error.kind() {
            io::ErrorKind::PermissionDenied => VipError::Denied(capability),
            _ => VipError::Kernel(what, error),
        }
    }
}

impl fmt::Display for VipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VipError::Bad(bad) => bad.fmt(f),
            VipError::TtlTooShort(ttl) => {
                let (ttl, least) = (bellwether_core::duration::print(*ttl), TTL_MIN.as_secs());
                write!(
                    f,
                    "a virtual address needs a ttl of at least {least}s, and this one is {ttl}: use --ttl {least}s or more; the kernel ends \
                     addresses in whole seconds"
                )
            }
            VipError::NoInterface(name, others) => {
                write!(f, "there is no interface {name}; there are {}", others.join(", "))
            }
            VipError::InterfaceDown(name) => {
                write!(f, "the interface {name} is down: bring it up (ip link set {name} up)")
            }
            VipError::Denied(capability) => {
                let what = if *capability == CAP_NET_RAW { "announce" } else { "set" };
                write!(
                    f,
                    "no permission to {what} addresses: {capability} is missing; run as root, or grant the program CAP_NET_ADMIN and \
                     CAP_NET_RAW (AmbientCapabilities= of systemd, or setcap)"
                )
            }
            VipError::Permanent(address) => {
                let (cidr, interface) = (address.cidr(), address.interface());
                write!(
                    f,
                    "{interface} already has {cidr}, without a lifetime, so somebody else set it: take it out of the host's own network \
                     configuration (ip address delete {cidr} dev {interface})"
                )
            }
            VipError::Foreign(address) => {
                let (cidr, interface) = (address.cidr(), address.interface());
                write!(
                    f,
                    "{interface} already has {cidr}, set by another program, such as a DHCP client: let only one of them have it"
                )
            }
            VipError::OtherPrefix(address, found) => {
                let (ip, prefix, interface) = (address.address(), address.prefix(), address.interface());
                write!(f, "{interface} already has {ip}/{found}, and not {ip}/{prefix}: use one prefix everywhere")
            }
            VipError::TooLate => f.write_str("too little is left of the leadership to set the address"),
            VipError::Over(over) => over.fmt(f),
            VipError::NeedsGuard => f.write_str(
                "this store proves a crash at once, and nobody would remove the address of a crashed leader before that: use `bellwether \
                 run --vip`, whose guard does",
            ),
            VipError::Kernel(what, error) => write!(f, "the kernel refused to {what}: {error}"),
        }
    }
}

impl std::error::Error for VipError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            VipError::Bad(bad) => Some(bad),
            VipError::Over(over) => Some(over),
            VipError::Kernel(_, error) => Some(error),
            _ => None,
        }
    }
}

impl From<BadAddress> for VipError {
    fn from(bad: BadAddress) -> VipError {
        VipError::Bad(bad)
    }
}

/// What setting an address needs.
pub(crate) const CAP_NET_ADMIN: &str = "CAP_NET_ADMIN";
/// What sending a frame needs.
pub(crate) const CAP_NET_RAW: &str = "CAP_NET_RAW";
