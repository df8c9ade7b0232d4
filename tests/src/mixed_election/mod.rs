//! One Lease with four candidates, two of client-go and two of ours: real processes, each on a machine of its own.
//!
//! Turn by turn, something happens to the leader: it is asked to end, killed, stopped for longer than its lease, or cut off from
//! the API server. The other candidates have seen it lead by then. A follower of ours watches, and is nearly always the first;
//! so, for client-go to have its share, in some turns nobody of ours follows. When all is over, every leadership is judged on the
//! one clock that all processes share.
//!
//! An overlap fails the election whoever is in it, but for what is client-go's own fault and is counted apart. A leader of its make
//! goes on beside its successor when it was stopped or cut off. And when one that was cut off is back, it releases whatever it
//! finds, its successor's Lease too, which others take before the successor has noticed. Ours never take it from a leader of ours.

mod figures;
mod plan;
mod seat;

use std::path::PathBuf;

use bellwether_deadman::boot_now;
use bellwether_support::netns::Network;
use bellwether_support::servers::kubernetes::{ADMIN, ClientGo, Server, Timing};
use bellwether_support::until_blocking;
use rustix::process::Signal;

use figures::Fault;
pub use figures::Figures;
pub use plan::{Fate, Make, Plan};
use seat::Seat;

use crate::{Candidate, silent_leader};

const ELECTION: &str = "shared";
const NAMESPACE: &str = "default";

/// An election that client-go and Bellwether share.
pub struct MixedElection {
    seats: Vec<Seat>,
    gone: Vec<Candidate>,
    /// So many candidates have been started: each has an id of its own.
    started: usize,
    /// When leaders of client-go were stopped or cut off.
    faults: Vec<Fault>,
    figures: Figures,
    witness: tempfile::TempDir,
    kubeconfig: PathBuf,
    url: String,
    server: Server,
    network: Network,
}

impl MixedElection {
    /// On an API server that has just been started; `None`, said aloud, where this is not root.
    pub fn new() -> Option<MixedElection> {
        let mut network = Network::new()?;
        let machine = network.node();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let server = runtime.block_on(Server::start_on(&machine));
        let makes = [Make::Ours, Make::ClientGo, Make::Ours, Make::ClientGo];
        Some(MixedElection {
            seats: makes.map(|make| Seat::new(make, network.node())).into(),
            gone: Vec::new(),
            started: 0,
            faults: Vec::new(),
            figures: Figures::default(),
            witness: tempfile::tempdir().expect("a temporary directory"),
            kubeconfig: server.kubeconfig(ADMIN),
            url: server.backend(ADMIN, NAMESPACE),
            server,
            network,
        })
    }

    /// Holds it, and judges.
    pub fn hold(mut self, plan: Plan) -> Figures {
        let mut turns = plan.turns();
        self.start(0);
        loop {
            // Not who began to lead last: one may have lost its lease since, and client-go's may still be two.
            let leader = self.leader(None);
            let Some((fate, next)) = turns.next(self.seats[leader].make) else { break };
            self.seat_followers(leader, next);
            self.turn(leader, fate);
        }
        for seat in 0..self.seats.len() {
            self.vacate(seat);
        }
        self.figures.judge(&self.gone, &self.faults);
        if let Ok(two) = std::fs::read_to_string(self.witness.path().join("two")) {
            self.figures.complain(format!("two witnesses at once: {two}"));
        }
        self.figures
    }

    /// Everybody but the leader follows it, and has seen it; nobody of ours, if client-go is to lead next.
    fn seat_followers(&mut self, leader: usize, next: Make) {
        for seat in (0..self.seats.len()).filter(|seat| *seat != leader) {
            if (next, self.seats[seat].make) == (Make::ClientGo, Make::Ours) {
                self.vacate(seat);
            } else if self.seats[seat].taken.is_none() {
                self.start(seat);
                self.seats[seat].joined();
            }
        }
    }

    /// Something happens to the leader, and another leads.
    fn turn(&mut self, leader: usize, fate: Fate) {
        let Seat { make, node, taken } = &mut self.seats[leader];
        let (make, candidate) = (*make, taken.as_mut().expect("a leader is there"));
        let before = boot_now();
        match fate {
            Fate::Released => _ = candidate.signal(Signal::TERM),
            Fate::Killed => _ = candidate.kill(),
            Fate::Stopped => _ = candidate.signal(Signal::STOP),
            Fate::CutOff => _ = self.network.cut(node),
        }
        self.leader(Some(leader));
        let seat = &mut self.seats[leader];
        match fate {
            Fate::Released | Fate::Killed => self.see_off(leader),
            Fate::Stopped => {
                seat.candidate().signal(Signal::CONT);
                seat.believes_no_more();
            }
            Fate::CutOff => {
                self.network.heal(&seat.node);
                seat.believes_no_more();
            }
        }
        if make == Make::ClientGo && fate.is_silent() {
            self.faults.push(Fault { from: before, until: boot_now(), cut_off: fate == Fate::CutOff });
        }
        self.figures.count(make, fate);
    }

    /// Waits until exactly one leads, not counting this one.
    fn leader(&mut self, but: Option<usize>) -> usize {
        until_blocking(|| {
            let others = (0..self.seats.len()).filter(|seat| Some(*seat) != but);
            let leading: Vec<usize> = others.filter(|seat| self.seats[*seat].leads()).collect();
            if let [leader] = leading[..] { Ok(leader) } else { Err(format!("{} lead", leading.len())) }
        })
    }

    fn start(&mut self, seat: usize) {
        self.started += 1;
        let Seat { make, node, taken } = &mut self.seats[seat];
        let id = format!("{make}-{}", self.started);
        *taken = Some(match make {
            Make::Ours => silent_leader::candidate(node, &self.url, &id, ELECTION, &self.witness),
            Make::ClientGo => {
                let (place, timing) = ((NAMESPACE, ELECTION), Timing::SHORT);
                let command = ClientGo::command(&self.kubeconfig, place, &id, timing, Some(node));
                Candidate::start_in(self.server.group(), command)
            }
        });
    }

    /// Asks whoever is there to end, and sees it off.
    fn vacate(&mut self, seat: usize) {
        if let Some(candidate) = &mut self.seats[seat].taken {
            candidate.signal(Signal::TERM);
            self.see_off(seat);
        }
    }

    /// Waits for the end of one that was asked to end, or killed.
    fn see_off(&mut self, seat: usize) {
        let Some(mut candidate) = self.seats[seat].taken.take() else { return };
        let ended = candidate.ended();
        if candidate.killed.is_none() && ended.code != Some(0) {
            self.figures.complain(format!("ended with {:?}: {}", ended.code, ended.stderr));
        }
        self.gone.push(candidate);
    }
}
