//! Two hosts that compete for an address, and a client on the same link.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use bellwether_support::Scratch;
use bellwether_support::netns::{Network, Node};
use bellwether_tests::{Candidate, Process, bellwether, until_blocking};
use bellwether_vip::VirtualAddress;
use rustix::process::Signal;

/// Where each host says its name to whoever connects.
const PORT: u16 = 7100;
/// How long a client waits for an answer before it tries again. Below the second after which TCP itself would.
const TRY_FOR: Duration = Duration::from_millis(100);

pub(crate) const V4: &str = "10.7.0.100/24@eth0";
pub(crate) const V6: &str = "fd00:7::100/64@eth0";

/// How candidates are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// With the address alone, guarded in a PID namespace.
    AddressAlone,
    /// With a command, and without a PID namespace.
    CommandWithoutNamespace,
}

pub(crate) struct Hosts {
    pub(crate) network: Network,
    pub(crate) hosts: [Node; 2],
    pub(crate) client: Node,
    pub(crate) backend: String,
    /// Where the store is, unless it is a server.
    _directory: Scratch,
    pub(crate) address: VirtualAddress,
    mark: String,
}

impl Hosts {
    /// `None`, said aloud, without the rights.
    pub(crate) fn new(address: &str) -> Option<Hosts> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut network = Network::new()?;
        let nodes = [network.node(), network.node(), network.node()];
        for (number, node) in nodes.iter().enumerate() {
            ip(node, &format!("address add fd00:7::{}/64 dev eth0 nodad", number + 1));
        }
        let [one, two, client] = nodes;
        for (node, name) in [(&one, b'a'), (&two, b'b')] {
            let listener = node.inside(|| TcpListener::bind(("::", PORT)).expect("a free port"));
            thread::spawn(move || {
                for mut stream in listener.incoming().flatten() {
                    let _ = stream.write_all(&[name]);
                }
            });
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("BELLWETHER_VIP_TEST={}-{count}", std::process::id());
        let address = address.parse().expect("an address");
        let directory = Scratch::new();
        let backend = format!("file:{}", directory.path().display());
        Some(Hosts { network, hosts: [one, two], client, backend, _directory: directory, address, mark })
    }

    /// `bellwether` on that host.
    pub(crate) fn command(&self, at: usize, arguments: &[&str]) -> Command {
        let mut command = self.hosts[at].command(bellwether());
        let (name, value) = self.mark.split_once('=').expect("a variable");
        command.env(name, value).env("BELLWETHER_BACKEND", &self.backend);
        command.args(["--id", ["a", "b"][at]]).args(arguments);
        command
    }

    pub(crate) fn candidate(&self, at: usize, kind: Kind) -> Candidate {
        let address = self.address.to_string();
        let mut arguments = vec!["run", "vip", "--events", "--ttl", "6s", "--vip", &address];
        if kind == Kind::CommandWithoutNamespace {
            arguments.extend(["--no-pid-namespace", "--", "sleep", "1000"]);
        }
        Candidate::start(self.command(at, &arguments))
    }

    /// The processes of this name below a candidate.
    pub(crate) fn processes(&self, candidate: &Candidate, name: &str) -> Vec<Process> {
        let alive = Process::all_with(&self.mark);
        let top = candidate.pid().cast_signed();
        let is_below = |process: &Process| {
            let mut at = process.pid;
            loop {
                if at == top {
                    return true;
                }
                match alive.iter().find(|process| process.pid == at) {
                    Some(found) => at = found.parent,
                    None => return false,
                }
            }
        };
        alive
            .iter()
            .filter(|process| is_below(process) && (name.is_empty() || process.name == name))
            .cloned()
            .collect()
    }

    pub(crate) fn has_it(&self, at: usize) -> bool {
        shown(&self.hosts[at], &self.address).is_some()
    }

    /// Waits until the host has the address.
    pub(crate) fn until_held(&self, at: usize) {
        until_blocking(|| {
            if self.has_it(at) { Ok(()) } else { Err(format!("{} is not on host {at}", self.address)) }
        });
    }

    /// Waits until the client is answered by that host, and returns when.
    pub(crate) fn until_reached(&self, at: usize) -> Boot {
        let (to, name) = (self.address.address(), ["a", "b"][at]);
        until_blocking(|| match self.client.inside(|| asked(to)) {
            Some(answer) if answer == name => Ok(boot_now()),
            answer => Err(format!("host {name} is not reached at {to}: {answer:?}")),
        })
    }

    /// Waits until the client would send to that host, without sending anything. Only for a client that has sent before.
    pub(crate) fn until_neighbour_is(&self, at: usize) {
        let link = link_address(&self.hosts[at]);
        until_blocking(|| match neighbour(&self.client, self.address.address()) {
            Some(known) if known == link => Ok(()),
            known => Err(format!("the client knows {} as {known:?}, and not as {link}", self.address)),
        });
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for process in Process::all_with(&self.mark) {
            process.signal(Signal::KILL);
        }
    }
}

/// Who answers at this address.
fn asked(to: IpAddr) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::new(to, PORT), TRY_FOR).ok()?;
    stream.set_read_timeout(Some(TRY_FOR)).ok()?;
    let mut name = String::new();
    stream.read_to_string(&mut name).ok()?;
    Some(name)
}

pub(crate) fn ip(node: &Node, args: &str) -> String {
    let output = Command::new("ip").args(["-n", &node.namespace]).args(args.split(' ')).output();
    let output = output.expect("iproute2 is installed");
    assert!(output.status.success(), "ip {args}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The line about this address, if the host has it.
pub(crate) fn shown(node: &Node, address: &VirtualAddress) -> Option<String> {
    let all = ip(node, "-oneline address show dev eth0");
    all.lines().find(|line| line.contains(&format!(" {} ", address.cidr()))).map(str::to_owned)
}

fn neighbour(node: &Node, address: IpAddr) -> Option<String> {
    let said = ip(node, &format!("neighbour show {address} dev eth0"));
    said.split_whitespace().skip_while(|word| *word != "lladdr").nth(1).map(str::to_owned)
}

fn link_address(node: &Node) -> String {
    let said = ip(node, "-oneline link show dev eth0");
    said.split_whitespace().skip_while(|word| *word != "link/ether").nth(1).expect("an Ethernet").to_owned()
}
