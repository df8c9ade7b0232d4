//! What a manager needs done to the system: the seam between deciding and doing.

use crate::arp::LinkAddress;
use crate::{PresentAddress, VirtualAddress};
use std::io;
use std::os::fd::OwnedFd;

/// An interface, as the kernel shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its link address, if it is an Ethernet whose neighbours can be told anything.
    pub address: Option<LinkAddress>,
    /// Whether it is switched on.
    pub is_up: bool,
    /// Whether it forwards IPv6 packets for others.
    pub forwards: bool,
}

/// How an address is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How long the kernel keeps it, in seconds.
    pub lifetime_s: u32,
    /// Whether a route to its network comes and goes with it.
    pub with_route: bool,
    /// Whether it must not be there yet; else its lifetime is replaced, or it is added.
    pub is_new: bool,
}

/// Does to the system what a [`Manager`](crate::Manager) decides. Each call is one or two system calls, and none waits for others.
///
/// `Netlink` is the real one. Errors are the kernel's own.
pub trait Executor {
    /// The interface of this name, if there is one.
    fn link(&mut self, name: &str) -> io::Result<Option<Link>>;

    /// The names of all interfaces.
    fn links(&mut self) -> io::Result<Vec<String>>;

    /// The addresses of an interface, and whether this kernel shows who set an address.
    fn addresses(&mut self, link: &Link) -> io::Result<(Vec<PresentAddress>, bool)>;

    /// Sets the address, without duplicate address detection. [`AlreadyExists`](io::ErrorKind::AlreadyExists) if it must be new and is not.
    fn set(&mut self, link: &Link, address: &VirtualAddress, how: Setting) -> io::Result<()>;

    /// Removes exactly this address. False if it is not there.
    fn remove(&mut self, link: &Link, address: &VirtualAddress) -> io::Result<bool>;

    /// Gets ready to send frames on this interface, which needs a right of its own.
    fn prepare_sending(&mut self, link: &Link) -> io::Result<()>;

    /// Sends a whole Ethernet frame.
    fn send(&mut self, link: &Link, frame: &[u8]) -> io::Result<()>;

    /// Marks this process, among those of this host, as one that has the address until the answer is closed in it and in its children.
    /// `None` if another one has it.
    fn claim(&mut self, address: &VirtualAddress) -> io::Result<Option<OwnedFd>>;
}
