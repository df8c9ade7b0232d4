//! Machines that a cable joins, made of network namespaces, and a cable that can be pulled in silence.
//!
//! ```text
//!  ┌ node ─────┐      ┌ switch ──────┐      ┌ node ─────┐
//!  │ 10.7.0.1  eth0 ── n1 ┐ bridge ┌ n2 ── eth0 10.7.0.2 │
//!  └───────────┘      └───┴────────┴─┘      └───────────┘
//! ```
//!
//! The bridge has a namespace too, so nothing of it shows outside, and addresses of one network never meet those of
//! another. A node is cut off by taking its end out of the bridge: its link stays up and packets vanish, so that neither
//! side hears of it, as with a dead switch. Whoever connects by a Unix socket is not concerned: files have no network.
//!
//! All of it needs root, and Debian's `iproute2`.

use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::{is_root, skipped};

/// Namespaces joined by a bridge. Gone when dropped, with whatever still runs there losing its network.
#[derive(Debug)]
pub struct Network {
    name: String,
    nodes: u32,
}

/// A machine on a network.
#[derive(Clone, Debug)]
pub struct Node {
    /// The name of its namespace.
    pub namespace: String,
    /// Its address.
    pub address: String,
    number: u32,
}

impl Network {
    /// One without nodes; `None`, said aloud, where this is not root.
    pub fn new() -> Option<Network> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !is_root() {
            skipped("network namespaces need root");
            return None;
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let network = Network { name: format!("bellwether-{}-{count}", std::process::id()), nodes: 0 };
        let switch = network.switch();
        ip(&["netns", "add", &switch]);
        for bridge in ["bridge", "island"] {
            ip(&["-n", &switch, "link", "add", bridge, "up", "type", "bridge"]);
        }
        Some(network)
    }

    /// One more machine.
    pub fn node(&mut self) -> Node {
        self.nodes += 1;
        let number = self.nodes;
        let node = Node {
            namespace: format!("{}-{number}", self.name),
            address: format!("10.7.0.{number}"),
            number,
        };
        let (switch, here, leg) = (self.switch(), node.namespace.as_str(), node.leg());
        ip(&["netns", "add", here]);
        ip(&["-n", here, "link", "set", "lo", "up"]);
        ip(&["-n", &switch, "link", "add", &leg, "type", "veth", "peer", "name", "eth0", "netns", here]);
        ip(&["-n", &switch, "link", "set", &leg, "up", "master", "bridge"]);
        ip(&["-n", here, "address", "add", &format!("{}/24", node.address), "dev", "eth0"]);
        ip(&["-n", here, "link", "set", "eth0", "up"]);
        node
    }

    /// Cuts it off in silence; returns the instant after which nothing passes.
    pub fn cut(&self, node: &Node) -> Boot {
        ip(&["-n", &self.switch(), "link", "set", &node.leg(), "nomaster"]);
        boot_now()
    }

    /// Puts these on an island: they reach each other and nobody else, and nobody hears of it. Returns the instant after which
    /// nothing passes to the others.
    pub fn part(&self, nodes: &[&Node]) -> Boot {
        for node in nodes {
            ip(&["-n", &self.switch(), "link", "set", &node.leg(), "master", "island"]);
        }
        boot_now()
    }

    /// Joins it again, also from an island.
    pub fn heal(&self, node: &Node) {
        ip(&["-n", &self.switch(), "link", "set", &node.leg(), "master", "bridge"]);
    }

    fn switch(&self) -> String {
        format!("{}-switch", self.name)
    }
}

impl Node {
    /// This program, to be run there.
    pub fn command(&self, program: &Path) -> Command {
        within(&self.namespace, program)
    }

    /// Does this there, on a thread of its own: a socket that it opens stays there, whoever uses it later.
    ///
    /// # Panics
    /// When the namespace is gone.
    pub fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let there =
            std::fs::File::open(format!("/run/netns/{}", self.namespace)).expect("the namespace is there");
        let acting = || {
            move_into_link_name_space(there.as_fd(), Some(LinkNameSpaceType::Network)).expect("this is root");
            act()
        };
        std::thread::scope(|scope| scope.spawn(acting).join().expect("it does not panic"))
    }

    fn leg(&self) -> String {
        format!("n{}", self.number)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let nodes = (1..=self.nodes).map(|number| format!("{}-{number}", self.name));
        for namespace in nodes.chain([self.switch()]) {
            let _ = Command::new("ip").args(["netns", "delete", &namespace]).output();
        }
    }
}

/// This program, to be run in that namespace. The process started is the program itself in the end, with the same number.
pub(crate) fn within(namespace: &str, program: &Path) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{namespace}")).arg("--").arg(program);
    command
}

fn ip(args: &[&str]) {
    let output = Command::new("ip").args(args).output().expect("iproute2 is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {} failed: {said}", args.join(" "));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Network, Node};

    /// Not by ping, which is not everywhere: whoever has an answer to "who has this address" reaches it.
    fn reaches(one: &Node, other: &Node) -> bool {
        let mut knock = one.command(Path::new("timeout"));
        let script = format!("exec 3<>/dev/tcp/{}/9", other.address);
        let said = knock.args(["2", "bash", "-c", &script]).output().unwrap().stderr;
        // Nobody listens there, which only a machine that is reached can say.
        String::from_utf8_lossy(&said).contains("refused")
    }

    #[test]
    fn those_on_an_island_reach_each_other_and_nobody_else() {
        let Some(mut network) = Network::new() else { return };
        let (one, two, three) = (network.node(), network.node(), network.node());
        network.part(&[&one, &two]);
        assert!(reaches(&one, &two) && !reaches(&one, &three));
        network.heal(&one);
        assert!(reaches(&one, &three) && !reaches(&one, &two));
    }

    #[test]
    fn a_node_that_is_cut_off_is_not_reached_and_after_healing_it_is() {
        let Some(mut network) = Network::new() else { return };
        let (one, two) = (network.node(), network.node());
        assert!(reaches(&one, &two));
        network.cut(&two);
        assert!(!reaches(&one, &two));
        network.heal(&two);
        assert!(reaches(&one, &two));
    }
}
