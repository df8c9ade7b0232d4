//! The socket that systemd listens on. Sending to it never waits.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) struct NotifySocket {
    socket: UnixDatagram,
    systemd: SocketAddr,
    warned: AtomicBool,
}

impl NotifySocket {
    /// At a path, or under a name without a file, which begins with `@`.
    pub(super) fn open(address: &OsStr) -> io::Result<NotifySocket> {
        let systemd = match address.as_bytes() {
            [b'@', name @ ..] => nameless(name)?,
            [b'/', ..] => SocketAddr::from_pathname(Path::new(address))?,
            _ => {
                return Err(io::Error::new(io::ErrorKind::Unsupported, "neither a path nor a name after @"));
            }
        };
        // Opened once, at the start: later there may be no descriptor left.
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(NotifySocket { socket, systemd, warned: AtomicBool::new(false) })
    }

    /// Sends it if that can be done at once. The first failure is logged.
    pub(super) fn send(&self, message: &str) -> bool {
        match self.socket.send_to_addr(message.as_bytes(), &self.systemd) {
            Ok(_) => true,
            Err(error) => {
                if !self.warned.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "systemd could not be told how this process stands; trying on");
                }
                false
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn nameless(name: &[u8]) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux has sockets without a file"))
}
