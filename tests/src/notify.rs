//! The socket of a service manager: what a process says of itself by `sd_notify`.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_deadman::{boot_now, random_bits};

use crate::PATIENCE;

/// Listens as systemd does.
pub struct ServiceManager {
    socket: UnixDatagram,
    address: OsString,
}

/// A message, and when it was read.
#[derive(Clone, Debug)]
pub struct Notification {
    /// Its lines, each a field.
    pub text: String,
    /// By the boot-time clock.
    pub at: Boot,
}

impl Notification {
    /// Whether it has exactly this line.
    pub fn says(&self, line: &str) -> bool {
        self.text.lines().any(|one| one == line)
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }
}

impl ServiceManager {
    /// At a path in this directory.
    pub fn in_directory(directory: &Path) -> ServiceManager {
        let path = directory.join("notify");
        let socket = UnixDatagram::bind(&path).expect("our own directory");
        ServiceManager { socket, address: path.into_os_string() }
    }

    /// Under a name without a file.
    pub fn nameless() -> ServiceManager {
        let name = format!("bellwether-test-{:032x}", random_bits());
        let address = SocketAddr::from_abstract_name(&name).expect("a short name");
        let socket = UnixDatagram::bind_addr(&address).expect("nobody else's name");
        ServiceManager { socket, address: format!("@{name}").into() }
    }

    /// Tells a command of this socket, and of a watchdog if one is given. For any process, since the command may be started by another.
    pub fn tell(&self, command: &mut Command, watchdog: Option<Duration>) {
        command.env("NOTIFY_SOCKET", &self.address).env_remove("WATCHDOG_PID").env_remove("WATCHDOG_USEC");
        if let Some(limit) = watchdog {
            command.env("WATCHDOG_USEC", limit.as_micros().to_string());
        }
    }

    /// The next message, if one comes within this time.
    pub fn next(&self, limit: Duration) -> Option<Notification> {
        let mut bytes = [0; 4_096];
        self.socket.set_read_timeout(Some(limit.max(Duration::from_millis(1)))).expect("a duration");
        match self.socket.recv(&mut bytes) {
            Ok(count) => {
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                Some(Notification { text, at: boot_now() })
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// The next message of which this is true; the messages before it are returned too, it is the last.
    #[track_caller]
    pub fn until(&self, mut wanted: impl FnMut(&Notification) -> bool) -> Vec<Notification> {
        let by = boot_now() + PATIENCE;
        let mut heard = Vec::new();
        loop {
            let next = self.next(by.since(boot_now()));
            heard.push(next.unwrap_or_else(|| panic!("nothing like it within {PATIENCE:?}: {heard:?}")));
            if heard.last().is_some_and(&mut wanted) {
                return heard;
            }
        }
    }

    /// Waits for a status with these words, and returns the message.
    #[track_caller]
    pub fn status(&self, words: &str) -> Notification {
        let said = |one: &Notification| one.field("STATUS").is_some_and(|status| status.contains(words));
        self.until(said).pop().expect("the last one")
    }

    /// Takes in what waits, and then all that comes within this time.
    pub fn during(&self, span: Duration) -> Vec<Notification> {
        while self.next(Duration::from_millis(1)).is_some() {}
        let by = boot_now() + span;
        let mut heard = Vec::new();
        while boot_now() < by {
            heard.extend(self.next(by.since(boot_now())));
        }
        heard
    }
}
