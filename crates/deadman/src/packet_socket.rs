//! A socket that sends whole frames on one interface.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Opens a socket that sends whole frames on the interface of this number, and receives none. Needs CAP_NET_RAW.
///
/// # Errors
/// Without that right ([`PermissionDenied`](io::ErrorKind::PermissionDenied)), or when there is no such interface.
pub fn packet_socket(link: u32) -> io::Result<OwnedFd> {
    // Protocol 0 receives nothing.
    // SAFETY: takes no pointers; the answer is checked before use.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was opened just now and nothing else knows of it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: 0,
        sll_ifindex: link.try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the address is a whole `sockaddr_ll`, of the length that is said, and lives through the call.
    let status = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32)
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(socket)
}
