//! Which address, on which interface.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// The longest name that the kernel gives an interface.
const INTERFACE_MAX_BYTES: usize = 15;

/// An address with its prefix length, and the interface that it is to be on: `10.0.0.9/24@eth0`.
///
/// ```
/// use bellwether_vip::VirtualAddress;
///
/// let address: VirtualAddress = "10.0.0.9/24@eth0".parse().unwrap();
/// assert_eq!(address.cidr(), "10.0.0.9/24");
/// assert_eq!(address.interface(), "eth0");
/// assert!("10.0.0.9@eth0".parse::<VirtualAddress>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VirtualAddress {
    address: IpAddr,
    prefix: u8,
    interface: String,
}

/// Why a text is not a virtual address. It says what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAddress(String);

impl VirtualAddress {
    /// This address, with a prefix length, on the interface of that name.
    ///
    /// # Errors
    /// When no host can have the address, when the prefix is too long for it, or when no interface can have the name.
    pub fn new(
        address: IpAddr,
        prefix: u8,
        interface: impl Into<String>,
    ) -> Result<VirtualAddress, BadAddress> {
        let interface = interface.into();
        let bits = if address.is_ipv4() { 32 } else { 128 };
        if prefix == 0 || prefix > bits {
            let sentence = format!("the prefix of {address} must be from 1 to {bits}, not {prefix}");
            return Err(BadAddress(sentence));
        }
        if let Some(kind) = unusable(address, prefix) {
            return Err(BadAddress(format!("{address} is {kind}: give an address that a host can have")));
        }
        let is_bad = |c: char| c == '/' || c.is_whitespace() || c.is_control();
        if interface.is_empty()
            || interface.len() > INTERFACE_MAX_BYTES
            || interface == "."
            || interface == ".."
            || interface.contains(is_bad)
        {
            let sentence =
                format!("{interface:?} is not the name of an interface: `ip link` shows those there are");
            return Err(BadAddress(sentence));
        }
        Ok(VirtualAddress { address, prefix, interface })
    }

    /// The address alone.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits of it name the network.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// The name of the interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Address and prefix, as `10.0.0.9/24`.
    pub fn cidr(&self) -> String {
        format!("{}/{}", self.address, self.prefix)
    }
}

fn unusable(address: IpAddr, prefix: u8) -> Option<&'static str> {
    if address.is_unspecified() {
        return Some("no address at all");
    }
    if address.is_multicast() {
        return Some("a multicast address");
    }
    match address {
        IpAddr::V4(v4) if v4 == Ipv4Addr::BROADCAST => Some("a broadcast address"),
        // Networks of 31 and 32 bits have neither (RFC 3021).
        IpAddr::V4(v4) if prefix < 31 => {
            let host = u32::MAX >> prefix;
            match v4.to_bits() & host {
                0 => Some("the address of its network"),
                bits if bits == host => Some("the broadcast address of its network"),
                _ => None,
            }
        }
        _ => None,
    }
}

impl FromStr for VirtualAddress {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<VirtualAddress, BadAddress> {
        let form = || BadAddress(format!("{text:?} must be ADDR/PREFIX@IFACE, as 10.0.0.9/24@eth0"));
        let (cidr, interface) = text.split_once('@').ok_or_else(form)?;
        let (address, prefix) = cidr.split_once('/').ok_or_else(form)?;
        let address = address.parse().map_err(|_| BadAddress(format!("{address:?} is not an IP address")))?;
        let prefix = prefix.parse().map_err(|_| form())?;
        VirtualAddress::new(address, prefix, interface)
    }
}

impl fmt::Display for VirtualAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.address, self.prefix, self.interface)
    }
}

impl TryFrom<String> for VirtualAddress {
    type Error = BadAddress;

    fn try_from(text: String) -> Result<VirtualAddress, BadAddress> {
        text.parse()
    }
}

impl From<VirtualAddress> for String {
    fn from(address: VirtualAddress) -> String {
        address.to_string()
    }
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadAddress {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["10.0.0.9/24@eth0", "10.0.0.9/32@bond0.7", "10.0.0.8/31@eth0", "fd00::9/64@eth0"] {
            let address: VirtualAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(VirtualAddress::try_from(String::from(address.clone())), Ok(address));
        }
    }

    #[test]
    fn each_mistake_is_named() {
        for (text, said) in [
            ("10.0.0.9", "ADDR/PREFIX@IFACE"),
            ("10.0.0.9/24", "ADDR/PREFIX@IFACE"),
            ("10.0.0.9@eth0", "ADDR/PREFIX@IFACE"),
            ("10.0.0.9/x@eth0", "ADDR/PREFIX@IFACE"),
            ("10.0.0/24@eth0", "not an IP address"),
            ("host/24@eth0", "not an IP address"),
            ("10.0.0.9/33@eth0", "from 1 to 32"),
            ("10.0.0.9/0@eth0", "from 1 to 32"),
            ("fd00::9/129@eth0", "from 1 to 128"),
            ("0.0.0.0/24@eth0", "no address"),
            ("224.0.0.1/24@eth0", "multicast"),
            ("ff02::1/64@eth0", "multicast"),
            ("10.0.0.0/24@eth0", "its network"),
            ("10.0.0.255/24@eth0", "broadcast"),
            ("10.0.0.9/24@", "name of an interface"),
            ("10.0.0.9/24@eth 0", "name of an interface"),
            ("10.0.0.9/24@../up", "name of an interface"),
            ("10.0.0.9/24@a-name-of-16-byte", "name of an interface"),
        ] {
            let error = text.parse::<VirtualAddress>().unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
