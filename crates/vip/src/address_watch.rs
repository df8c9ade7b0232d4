//! News of addresses that are removed.

use crate::VirtualAddress;
use crate::netlink::{messages, read_address};
use netlink_packet_core::NetlinkPayload;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The kernel's group that hears of changes to addresses, for each family.
const IPV4_ADDRESSES: u32 = 5;
const IPV6_ADDRESSES: u32 = 9;
/// The largest piece of news.
const NEWS_MAX_BYTES: usize = 64 * 1024;

/// Hears of every address that is removed from an interface of this network namespace, by whomever.
#[derive(Debug)]
pub struct AddressWatch {
    socket: Socket,
    address: VirtualAddress,
}

impl AddressWatch {
    /// Listens from now on for the removal of this address.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn new(address: VirtualAddress) -> io::Result<AddressWatch> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, 0))?;
        let group = if address.address().is_ipv4() { IPV4_ADDRESSES } else { IPV6_ADDRESSES };
        socket.add_membership(group)?;
        Ok(AddressWatch { socket, address })
    }

    /// Whether the address was removed since the last look. It may be there again, and it may have been removed from another interface:
    /// interfaces change their numbers and names, so whoever wants it looks.
    pub fn was_removed(&self) -> bool {
        let mut removed = false;
        let mut buffer = vec![0; NEWS_MAX_BYTES];
        loop {
            match rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((received, _)) => removed |= self.is_told(&buffer[..received]),
                Err(Errno::INTR) => {}
                // There was more than fits, so it may have been among what is lost.
                Err(Errno::NOBUFS) => removed = true,
                Err(_) => return removed,
            }
        }
    }

    fn is_told(&self, bytes: &[u8]) -> bool {
        let Ok(messages) = messages(bytes) else { return true };
        messages.into_iter().any(|message| match message.payload {
            NetlinkPayload::InnerMessage(news @ RouteNetlinkMessage::DelAddress(_)) => {
                let is_it =
                    |address, prefix| (address, prefix) == (self.address.address(), self.address.prefix());
                read_address(news).is_some_and(|(_, found)| is_it(found.address, found.prefix))
            }
            _ => false,
        })
    }
}

impl AsFd for AddressWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
