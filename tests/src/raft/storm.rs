//! Leaders that are killed, stopped, cut off and asked to leave, one after the other, under clients on every machine.
//!
//! The client on the leader's own machine asks that leader first, also while it is cut off and at the moment it wakes up: if it ever
//! answered from what it remembers, the judge would see it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bellwether_deadman::boot_now;
use bellwether_support::Stopped;

use super::{Act, Client, Nodes, Operation, Outcome, complaints};
use crate::until_blocking;

const NODES: usize = 3;

/// Between two operations of a client: a storm of minutes is to be judged in seconds.
const PAUSE: Duration = Duration::from_millis(3);

/// Operations on one register, of all clients together: short enough to be judged, long enough to see a leader come and go.
const PER_REGISTER: usize = 150;

/// Operations that are answered between two faults: what a leader did must be seen by others before the next one fails.
const BETWEEN: usize = 60;

/// What happens to a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Kill −9, and it is started again.
    Killed,
    /// SIGSTOP until another leads, then SIGCONT.
    Stopped,
    /// No packet passes until another leads.
    CutOff,
    /// SIGTERM, and it is started again.
    Terminated,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 4] = [Fault::Killed, Fault::Stopped, Fault::CutOff, Fault::Terminated];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Fault::Killed => "killed",
            Fault::Stopped => "stopped",
            Fault::CutOff => "cut off",
            Fault::Terminated => "asked to leave",
        })
    }
}

/// A cluster with clients.
pub struct Storm {
    nodes: Nodes,
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<Vec<Operation>>>,
    /// How long each fault kept everybody from being answered.
    outages: BTreeMap<Fault, Vec<Duration>>,
}

#[derive(Default)]
struct Shared {
    operations: AtomicUsize,
    /// When the last operation was called that was answered.
    answered: AtomicU64,
    done: AtomicUsize,
    ends: AtomicBool,
}

impl Storm {
    /// Forms a cluster, with a client on each machine; `None`, said aloud, where there are no network namespaces.
    pub fn begin() -> Option<Storm> {
        let mut nodes = Nodes::in_network(NODES)?;
        nodes.form();
        let shared = Arc::new(Shared::default());
        let start = |at: usize| {
            let (shared, make) = (Arc::clone(&shared), nodes.client_maker(at));
            let host = nodes.seats[at].host.clone().expect("each has a machine");
            thread::spawn(move || host.inside(|| shared.ask(&make(), at)))
        };
        let clients = (0..NODES).map(start).collect();
        let storm = Storm { nodes, shared, clients, outages: BTreeMap::new() };
        storm.goes_on();
        Some(storm)
    }

    /// Does this to whoever leads, waits until clients are answered again, and mends it.
    pub fn round(&mut self, fault: Fault) {
        let enough = self.shared.done.load(Ordering::Relaxed) + BETWEEN;
        until_blocking(|| match self.shared.done.load(Ordering::Relaxed) >= enough {
            true => Ok(()),
            false => Err("clients are hardly answered"),
        });
        let leader = self.nodes.leader(0);
        let began = boot_now();
        match fault {
            Fault::Killed => {
                self.nodes.seats[leader].kill();
                self.note_outage(fault, began);
                self.nodes.start_ready([leader]);
            }
            Fault::Stopped => {
                let stopped = Stopped::process(self.nodes.seats[leader].process().pid());
                self.note_outage(fault, began);
                drop(stopped);
            }
            Fault::CutOff => {
                let host = self.nodes.seats[leader].host.clone().expect("each has a machine");
                let network = self.nodes.network.as_ref().expect("they have a network");
                network.cut(&host);
                self.goes_on();
                network.heal(&host);
                self.outages.entry(fault).or_default().push(boot_now().since(began));
            }
            Fault::Terminated => {
                self.nodes.stop(leader);
                self.note_outage(fault, began);
                self.nodes.start_ready([leader]);
            }
        }
        until_blocking(|| match self.nodes.view(leader) {
            Ok(view) if view.is_ready => Ok(()),
            view => Err(format!("the leader that was {fault} does not come back: {view:?}")),
        });
    }

    /// Ends the clients, and judges what they were told.
    pub fn end(mut self) -> Figures {
        self.shared.ends.store(true, Ordering::Relaxed);
        let told = self.clients.drain(..).flat_map(|client| client.join().expect("the client does not fail"));
        let operations: Vec<Operation> = told.collect();
        self.nodes.agree();
        let mut counts = [0; 3];
        for operation in &operations {
            counts[match operation.outcome {
                Outcome::Written { .. } | Outcome::Done { .. } => 0,
                Outcome::Refused(_) => 1,
                Outcome::Unknown(_) => 2,
            }] += 1;
        }
        let [done, refused, unknown] = counts;
        let complaints = complaints(&operations);
        Figures { done, refused, unknown, outages: std::mem::take(&mut self.outages), complaints }
    }

    fn note_outage(&mut self, fault: Fault, began: bellwether_core::Boot) {
        self.goes_on();
        self.outages.entry(fault).or_default().push(boot_now().since(began));
    }

    /// Waits until somebody is answered who asked after this call.
    fn goes_on(&self) {
        let begin = boot_now().as_nanos();
        until_blocking(|| match self.shared.answered.load(Ordering::Acquire) > begin {
            true => Ok(()),
            false => Err("no client is answered any more"),
        });
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    /// Writes and reads until it is over.
    fn ask(&self, client: &Client, number: usize) -> Vec<Operation> {
        let mut told = Vec::new();
        while !self.ends.load(Ordering::Relaxed) {
            let count = self.operations.fetch_add(1, Ordering::Relaxed);
            let register = format!("storm-{}", count / PER_REGISTER);
            // Reads follow writes of the same client as often as those of others.
            let act = if told.len() % 3 == 2 { Act::Read } else { Act::Write(format!("{number}-{count}")) };
            let called = boot_now();
            let outcome = match &act {
                Act::Write(text) => client.write(&register, text),
                Act::Read => client.read(&register),
            };
            let ended = boot_now();
            if outcome.is_done() {
                self.answered.fetch_max(called.as_nanos(), Ordering::Release);
                self.done.fetch_add(1, Ordering::Relaxed);
            }
            told.push(Operation { register, act, called, ended, outcome });
            thread::sleep(PAUSE);
        }
        told
    }
}

/// What came of a storm.
#[derive(Debug)]
pub struct Figures {
    /// Operations that were acknowledged.
    pub done: usize,
    /// Operations that were refused.
    pub refused: usize,
    /// Operations whose outcome the client was not told.
    pub unknown: usize,
    /// For each fault, how long after it a client was answered that asked after it.
    pub outages: BTreeMap<Fault, Vec<Duration>>,
    /// What no order explains.
    pub complaints: Vec<String>,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "operations: {} done, {} refused, {} unknown; {} registers without an order",
            self.done,
            self.refused,
            self.unknown,
            self.complaints.len()
        )?;
        writeln!(f, "{:<16} {:>6} {:>12} {:>12}", "the leader was", "times", "p50", "longest")?;
        for (fault, outages) in &self.outages {
            let mut sorted = outages.clone();
            sorted.sort_unstable();
            let (middle, longest) = (sorted[sorted.len() / 2], sorted[sorted.len() - 1]);
            let millis = |span: Duration| format!("{} ms", span.as_millis());
            writeln!(f, "{fault:<16} {:>6} {:>12} {:>12}", sorted.len(), millis(middle), millis(longest))?;
        }
        Ok(())
    }
}
