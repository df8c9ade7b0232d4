//! Packets between two processes, with file descriptors attached (SCM_RIGHTS).
//!
//! A pair of SOCK_SEQPACKET sockets: a packet arrives whole, and the end of the other process is the end of the channel.
//! Nothing here waits; whoever has to, polls.

use crate::PROOFS_MAX;
use crate::guard_protocol::MESSAGE_MAX_BYTES;
use bellwether_deadman::process::Pid;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The proofs and the standard input.
pub(crate) const DESCRIPTORS_MAX: usize = PROOFS_MAX + 1;

/// One packet.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) bytes: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
    /// Who sent it, by the receiver's numbering, where the receiver asked to be told.
    pub(crate) sender: Option<Pid>,
}

pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Whether this is an end of a channel.
pub(crate) fn is_channel(fd: impl AsFd) -> bool {
    rustix::net::sockopt::socket_type(fd).is_ok_and(|kind| kind == SocketType::SEQPACKET)
}

/// Sends one packet, or fails at once: the other end is gone, or has not read for very long.
pub(crate) fn send(to: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors for one packet"));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::net::sendmsg(to, &[IoSlice::new(bytes)], &mut ancillary, flags)?;
    Ok(())
}

/// The next packet; `None` when the other end is gone.
///
/// # Errors
/// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none yet; a packet that is too long for either of us.
pub(crate) fn receive(from: BorrowedFd<'_>) -> io::Result<Option<Packet>> {
    let mut bytes = vec![0; MESSAGE_MAX_BYTES];
    let mut space =
        [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX), ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut receive =
        || rustix::net::recvmsg(from, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags);
    let received = match receive() {
        // The other end is gone, and did not read all that we said. The kernel says so once; what it said last comes after that.
        Err(Errno::CONNRESET | Errno::PIPE) => receive(),
        received => received,
    };
    let received = match received {
        Ok(received) => received,
        Err(Errno::CONNRESET | Errno::PIPE) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let mut packet = Packet { bytes, descriptors: Vec::new(), sender: None };
    for message in ancillary.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(fds) => packet.descriptors.extend(fds),
            RecvAncillaryMessage::ScmCredentials(credentials) => packet.sender = Some(credentials.pid),
            _ => {}
        }
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a packet was cut off"));
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        let sentence = "descriptors could not be received: too many open files; raise the limit (ulimit -n)";
        return Err(io::Error::new(io::ErrorKind::InvalidData, sentence));
    }
    // No packet of ours is empty.
    if received.bytes == 0 {
        return Ok(None);
    }
    packet.bytes.truncate(received.bytes);
    Ok(Some(packet))
}
