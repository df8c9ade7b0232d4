//! A DNS server of the test's own: dnsmasq, on an address of the loopback that nobody else has, ended with the test.
//!
//! It knows the zone `test` and nothing else: a name there that has no record does not exist (NXDOMAIN), and for every other name
//! it refuses (REFUSED). The program is that of the `PATH`, or Debian's, which is on no ordinary user's `PATH`.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::own_address;
use super::user::as_user;
use crate::until_blocking;

/// Above those that need root.
const PORT: u16 = 5353;
/// The only one that the system's own resolver asks.
const SYSTEM_PORT: u16 = 53;

/// A running DNS server.
#[derive(Debug)]
pub struct DnsServer {
    address: Ipv4Addr,
    port: u16,
    process: Option<Child>,
}

impl DnsServer {
    /// One with these SRV records: name, target, port.
    pub fn start(records: &[(&str, &str, u16)]) -> DnsServer {
        let mut server = DnsServer { address: own_address(), port: PORT, process: None };
        server.serve(records);
        server
    }

    /// One with these addresses of hosts, at the port that the system's own resolver asks, which needs root.
    pub fn of_hosts(hosts: &[(String, Ipv4Addr)]) -> DnsServer {
        let mut server = DnsServer { address: own_address(), port: SYSTEM_PORT, process: None };
        server.serve_hosts(hosts);
        server
    }

    /// One with the SRV records of a service, and with the addresses of the hosts that they name, at the port that the system's own
    /// resolver asks, which needs root. All hosts serve at the same port.
    pub fn of_service(service: &str, hosts: &[(String, Ipv4Addr)], port: u16) -> DnsServer {
        let mut server = DnsServer { address: own_address(), port: SYSTEM_PORT, process: None };
        server.serve_service(service, hosts, port);
        server
    }

    /// From now on it has these records and no others, at the same address.
    pub fn serve(&mut self, records: &[(&str, &str, u16)]) {
        let records = records.iter().map(|(name, target, port)| format!("--srv-host={name},{target},{port}"));
        self.run(as_user(&program(), None), records);
    }

    /// As [`serve`](DnsServer::serve), with addresses of hosts.
    pub fn serve_hosts(&mut self, hosts: &[(String, Ipv4Addr)]) {
        let records = hosts.iter().map(|(name, address)| format!("--host-record={name},{address}"));
        self.run(Command::new(program()), records);
    }

    /// As [`serve_hosts`](DnsServer::serve_hosts), with the SRV records of a service.
    pub fn serve_service(&mut self, service: &str, hosts: &[(String, Ipv4Addr)], port: u16) {
        let record = |(name, address): &(String, Ipv4Addr)| {
            [format!("--host-record={name},{address}"), format!("--srv-host={service},{name},{port}")]
        };
        self.run(Command::new(program()), hosts.iter().flat_map(record));
    }

    fn run(&mut self, mut command: Command, records: impl Iterator<Item = String>) {
        self.stop();
        command.args(["--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--log-facility=-"]);
        command.args(["--no-resolv", "--no-hosts", "--bind-interfaces", "--local=/test/"]);
        command.args([format!("--listen-address={}", self.address), format!("--port={}", self.port)]);
        command.args(records);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.spawn().expect("the DNS server starts"));
        until_blocking(|| TcpStream::connect(self.at()).map_err(|_| "the DNS server does not come up"));
    }

    /// Ends it: nobody answers any more.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // `setpriv` has become the server itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Where it listens, by UDP and TCP.
    pub fn at(&self) -> SocketAddr {
        (self.address, self.port).into()
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = places.find_map(|dir| Some(dir.join("dnsmasq")).filter(|program| program.exists()));
    found.expect("dnsmasq is installed: run `cargo xtask test`, which sees to it")
}
