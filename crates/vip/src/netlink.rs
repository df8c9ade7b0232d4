//! The kernel, by netlink: what the `ip` command uses, without the command.
//!
//! Every request is answered before the system call that reads the answer has to wait, so nothing here blocks for long.

use crate::arp::LinkAddress;
use crate::{Executor, Link, MARK, PresentAddress, Setting, VirtualAddress};
use bellwether_deadman::packet_socket;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, CacheInfo};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily as SocketFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// The largest answer that the kernel gives in one piece.
const ANSWER_MAX_BYTES: usize = 64 * 1024;
/// A lifetime that never ends.
const FOR_EVER: u32 = u32::MAX;

/// Speaks to the kernel of the network namespace that it was made in.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
    /// Sends frames on the interface of that number.
    packets: Option<(u32, OwnedFd)>,
}

impl Netlink {
    /// Opens a socket to the kernel, for which no rights are needed.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn new() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0, packets: None })
    }

    /// Sends one request, and returns what the kernel answers besides "done".
    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        rustix::net::send(&self.socket, &bytes, SendFlags::empty())?;
        let mut answers = Vec::new();
        let mut buffer = vec![0; ANSWER_MAX_BYTES];
        loop {
            let received = match rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
                Ok((received, _)) => received,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            for answer in messages(&buffer[..received])? {
                // The rest of an answer that was given up on.
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                match answer.payload {
                    NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                    NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(answers),
                    NetlinkPayload::InnerMessage(inner) => answers.push(inner),
                    _ => {}
                }
            }
        }
    }

    fn all_links(&mut self) -> io::Result<Vec<Link>> {
        let asked = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let answers = self.request(asked, NLM_F_DUMP)?;
        Ok(answers.into_iter().filter_map(read_link).collect())
    }
}

impl Executor for Netlink {
    fn link(&mut self, name: &str) -> io::Result<Option<Link>> {
        let mut asked = LinkMessage::default();
        asked.attributes.push(LinkAttribute::IfName(name.to_owned()));
        match self.request(RouteNetlinkMessage::GetLink(asked), NLM_F_ACK) {
            Ok(answers) => Ok(answers.into_iter().find_map(read_link)),
            Err(error) if is(&error, Errno::NODEV) => Ok(None),
            // A kernel that finds interfaces by number only.
            Err(error) if is(&error, Errno::INVAL) => {
                Ok(self.all_links()?.into_iter().find(|link| link.name == name))
            }
            Err(error) => Err(error),
        }
    }

    fn links(&mut self) -> io::Result<Vec<String>> {
        Ok(self.all_links()?.into_iter().map(|link| link.name).collect())
    }

    fn addresses(&mut self, link: &Link) -> io::Result<(Vec<PresentAddress>, bool)> {
        let asked = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let answers = self.request(asked, NLM_F_DUMP)?;
        let all: Vec<_> = answers.into_iter().filter_map(read_address).collect();
        // The kernel marks some of its own, such as IPv6's on the loopback interface.
        let marks_are_shown = all.iter().any(|(_, found)| found.mark.is_some()) || shows_marks();
        let here = all.into_iter().filter(|(index, _)| *index == link.index).map(|(_, found)| found);
        Ok((here.collect(), marks_are_shown))
    }

    fn set(&mut self, link: &Link, address: &VirtualAddress, how: Setting) -> io::Result<()> {
        let mut message = named(link, address);
        let mut flags = AddressFlags::Nodad;
        if !how.with_route {
            flags |= AddressFlags::Noprefixroute;
        }
        let mut cache = CacheInfo::default();
        // An IPv6 address is preferred for no time at all: else the kernel might choose it as the source of this host's own connections,
        // such as the one to the store, and they would break when it goes. Of IPv4's, it chooses the one that was there before.
        cache.ifa_preferred = if address.address().is_ipv4() { how.lifetime_s } else { 0 };
        cache.ifa_valid = how.lifetime_s;
        message.attributes.push(AddressAttribute::Flags(flags));
        message.attributes.push(AddressAttribute::CacheInfo(cache));
        message.attributes.push(AddressAttribute::Protocol(MARK.into()));
        let existing = if how.is_new { NLM_F_EXCL } else { NLM_F_REPLACE };
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_ACK | NLM_F_CREATE | existing).map(drop)
    }

    fn remove(&mut self, link: &Link, address: &VirtualAddress) -> io::Result<bool> {
        match self.request(RouteNetlinkMessage::DelAddress(named(link, address)), NLM_F_ACK) {
            Ok(_) => Ok(true),
            Err(error) if [Errno::ADDRNOTAVAIL, Errno::NODEV].iter().any(|errno| is(&error, *errno)) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn prepare_sending(&mut self, link: &Link) -> io::Result<()> {
        if self.packets.as_ref().is_none_or(|(index, _)| *index != link.index) {
            self.packets = Some((link.index, packet_socket(link.index)?));
        }
        Ok(())
    }

    fn send(&mut self, link: &Link, frame: &[u8]) -> io::Result<()> {
        self.prepare_sending(link)?;
        let (_, socket) = self.packets.as_ref().expect("prepared above");
        rustix::net::send(socket, frame, SendFlags::DONTWAIT)?;
        Ok(())
    }

    fn claim(&mut self, address: &VirtualAddress) -> io::Result<Option<OwnedFd>> {
        // A name without a file belongs to the network namespace, as the address does, and is free when its last holder has ended.
        let name = SocketAddrUnix::new_abstract_name(format!("bellwether-vip/{address}").as_bytes())?;
        let socket =
            rustix::net::socket_with(SocketFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        match rustix::net::bind(&socket, &name) {
            Ok(()) => Ok(Some(socket)),
            Err(Errno::ADDRINUSE) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// All messages of one packet.
pub(crate) fn messages(mut bytes: &[u8]) -> io::Result<Vec<NetlinkMessage<RouteNetlinkMessage>>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        // Each begins at a multiple of four.
        let length = (message.header.length as usize).next_multiple_of(4);
        all.push(message);
        bytes = bytes.get(length.max(4)..).unwrap_or_default();
    }
    Ok(all)
}

/// The address that a message is about, and the number of its interface.
pub(crate) fn read_address(message: RouteNetlinkMessage) -> Option<(u32, PresentAddress)> {
    let (RouteNetlinkMessage::NewAddress(message) | RouteNetlinkMessage::DelAddress(message)) = message
    else {
        return None;
    };
    let (mut local, mut address, mut valid, mut mark) = (None, None, FOR_EVER, None);
    for attribute in &message.attributes {
        match attribute {
            // With a peer, this is the host's own and the other one is the peer's.
            AddressAttribute::Local(ip) => local = Some(*ip),
            AddressAttribute::Address(ip) => address = Some(*ip),
            AddressAttribute::CacheInfo(cache) => valid = cache.ifa_valid,
            AddressAttribute::Protocol(protocol) => mark = Some(u8::from(*protocol)),
            _ => {}
        }
    }
    let found = PresentAddress {
        address: local.or(address)?,
        prefix: message.header.prefix_len,
        is_permanent: valid == FOR_EVER,
        mark,
    };
    Some((message.header.index, found))
}

fn read_link(message: RouteNetlinkMessage) -> Option<Link> {
    let RouteNetlinkMessage::NewLink(message) = message else { return None };
    let (mut name, mut address) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(found) => name = Some(found.clone()),
            LinkAttribute::Address(found) => address = LinkAddress::try_from(found.as_slice()).ok(),
            _ => {}
        }
    }
    let (header, name) = (&message.header, name?);
    let is_ethernet = header.link_layer_type == LinkLayerType::Ether;
    let is_told = is_ethernet && !header.flags.contains(LinkFlags::Noarp);
    let forwards = std::fs::read_to_string(format!("/proc/sys/net/ipv6/conf/{name}/forwarding"));
    Some(Link {
        index: header.index,
        name,
        address: address.filter(|_| is_told),
        is_up: header.flags.contains(LinkFlags::Up),
        forwards: forwards.is_ok_and(|text| text.trim() == "1"),
    })
}

/// The message that names exactly this address.
fn named(link: &Link, address: &VirtualAddress) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address.address());
    message.header.prefix_len = address.prefix();
    message.header.index = link.index;
    message.attributes.push(AddressAttribute::Local(address.address()));
    message.attributes.push(AddressAttribute::Address(address.address()));
    message
}

/// Whether this kernel is one that shows marks, by its version.
fn shows_marks() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    numbers.next().zip(numbers.next()).is_some_and(|version| version >= (5, 18))
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}
