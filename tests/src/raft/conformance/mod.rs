//! The suite that every backend passes, on a cluster of real processes that has just lost its leader.
//!
//! What is shown: for each batch of cases, the leader of a healthy cluster is killed, stopped or cut off, and only then does the first case
//! get its connection. The first call of a case is sent while nobody leads, and all others find one node of three missing: the leader that
//! failed stays dead, stopped or cut off until its batch is over. Candidates have the addresses of all three nodes, are on a machine of
//! their own, and are told nothing of the fault.
//!
//! What a case may rely on is what a candidate may rely on ([`patient`]). A call whose outcome is unknown is made again, and a leader whose
//! claim was answered late renews at once, since its deadline counts from before the outage. Safety is judged by the suite as on a healthy store. Only its two measures of patience are longer: the ttl
//! has to outlast the search for a node that answers ([`TTL`]), and news may be late by an outage ([`SLACK`]).
//!
//! The cases of [`TIMED`] are about instants that an outage moves. Their connections are used once before they begin, so they wait until
//! the cluster answers again, and then run with a node missing like the others.

mod figures;
mod harness;
mod met;
mod patient;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether_backend::conformance::{cases, run_some};
use bellwether_support::{Stopped, netns};
use tokio::runtime::Runtime;

use self::harness::Failing;
use super::{Fault, Nodes};
use crate::until_blocking;

pub use self::figures::{Batch, SuiteFigures};

const NODES: usize = 3;

/// The faults under which the suite is run. A leader that is asked to leave hands over, so candidates hardly notice.
const FAULTS: [Fault; 3] = [Fault::Killed, Fault::Stopped, Fault::CutOff];

/// A new candidate may dial the silent node first, and gives it up after a second: another one's leadership has to outlast that.
const TTL: Duration = Duration::from_secs(4);

/// An election of the cluster, and another that comes to nothing, on a machine that is busy.
const SLACK: Duration = Duration::from_secs(10);

/// Cases that say which of two calls comes first by their instants, or have less than a ttl for a call.
const TIMED: [&str; 6] = [
    // Four candidates, one after the other, ask for the first time within the ttl of a leader that is silent already.
    "of many at once one succeeds a silent leader",
    // Half of a ttl passes before the leader renews, which leaves no time for the follower to look for a node.
    "the last renewal counts, not the claim",
    "a renewal that nobody saw counts when the record vanishes",
    // The other candidate has to ask within a fifth of the ttl.
    "a reservation lets the named candidate in at once",
    // One claim is made half a ttl before another and is to arrive after it; in an outage both wait for the same leader.
    "a slow look makes no record older",
    // It runs after all others of its batch, so it cannot be the first to meet a fault.
    "observe writes nothing",
];

/// A cluster, and candidates beside it.
pub struct Conformance {
    cluster: Arc<Mutex<Cluster>>,
    /// The machine of the candidates. It is never cut off.
    host: netns::Node,
    /// Its threads are on that machine.
    runtime: Runtime,
    url: String,
}

impl Conformance {
    /// Forms a cluster; `None`, said aloud, where there are no network namespaces.
    pub fn begin() -> Option<Conformance> {
        let mut nodes = Nodes::in_network(NODES)?;
        let host = nodes.network.as_mut().expect("they have a network").node();
        nodes.form();
        let url = nodes.url(0);
        let runtime = host
            .inside(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build());
        let cluster = Arc::new(Mutex::new(Cluster { nodes, victim: None }));
        Some(Conformance { cluster, host, runtime: runtime.expect("a runtime"), url })
    }

    /// Runs every case once, under one of the faults: in three rounds in a row, each case meets each of them.
    pub fn round(&self, number: usize) -> SuiteFigures {
        let ordinary = || cases().filter(|case| !TIMED.contains(case)).enumerate();
        let mut batches = Vec::new();
        for (turn, fault) in FAULTS.into_iter().enumerate() {
            let is_in = |at: usize| (at + number) % FAULTS.len() == turn;
            let batch: Vec<&str> = ordinary().filter(|(at, _)| is_in(*at)).map(|(_, case)| case).collect();
            batches.push(self.batch(fault, &batch, false));
        }
        batches.push(self.batch(FAULTS[number % FAULTS.len()], &TIMED, true));
        SuiteFigures { batches }
    }

    /// Mends what is left of the last fault, and asks all nodes whether their states are equal.
    pub fn end(self) {
        let mut cluster = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        cluster.heal();
        cluster.nodes.agree();
    }

    /// Fails the leader when the first of these cases connects, and runs all of them at once.
    fn batch(&self, fault: Fault, batch: &[&str], is_timed: bool) -> Batch {
        self.cluster.lock().expect("an earlier batch ended well").heal();
        let harness = Arc::new(Failing::new(Arc::clone(&self.cluster), self.url.clone(), fault, is_timed));
        let report = self.host.inside(|| {
            let suite = run_some(harness.clone(), |case| batch.contains(&case));
            self.runtime.block_on(suite)
        });
        Batch::new(fault, is_timed, report, harness.met())
    }
}

/// The nodes, and which of them has failed.
struct Cluster {
    nodes: Nodes,
    victim: Option<Victim>,
}

struct Victim {
    at: usize,
    fault: Fault,
    /// Goes on when this is dropped.
    stopped: Option<Stopped>,
}

impl Cluster {
    /// Does this to whoever leads.
    fn fail(&mut self, fault: Fault) {
        assert!(self.victim.is_none(), "one node of three may fail");
        let at = self.nodes.leader(0);
        let seat = &mut self.nodes.seats[at];
        let mut stopped = None;
        match fault {
            Fault::Killed => seat.kill(),
            Fault::Stopped => stopped = Some(Stopped::process(seat.process().pid())),
            Fault::CutOff => {
                let host = seat.host.as_ref().expect("each has a machine");
                self.nodes.network.as_ref().expect("they have a network").cut(host);
            }
            Fault::Terminated => unreachable!("none of the faults of this suite"),
        }
        self.victim = Some(Victim { at, fault, stopped });
    }

    /// Mends what failed, and waits until all nodes are ready.
    fn heal(&mut self) {
        let Some(Victim { at, fault, stopped }) = self.victim.take() else { return };
        drop(stopped);
        match fault {
            Fault::Killed => self.nodes.start_ready([at]),
            Fault::CutOff => {
                let host = self.nodes.seats[at].host.as_ref().expect("each has a machine");
                self.nodes.network.as_ref().expect("they have a network").heal(host);
            }
            Fault::Stopped | Fault::Terminated => {}
        }
        for at in 0..NODES {
            until_blocking(|| match self.nodes.view(at) {
                Ok(view) if view.is_ready => Ok(()),
                view => Err(format!("not ready after a leader was {fault}: {view:?}")),
            });
        }
    }
}
