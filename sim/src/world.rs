//! The world: who is in it, what is going to happen, and the loop that makes it happen.
//!
//! One thread, one queue, one source of randomness: the same seed gives the same world to the last bit.

use bellwether_core::Rng;

use crate::candidate::SimCandidate;
use crate::election::SimElection;
use crate::heal::Heal;
use crate::invariants::exclusion::SimLeadership;
use crate::invariants::{BrokenInvariant, Verdict, Violation};
use crate::key::{ElectionKey, Seat};
use crate::node::Node;
use crate::options::{StoreKind, WorldOptions};
use crate::queue::{Queue, WorldEvent};
use crate::session::network::SessionWorld;
use crate::session::server::Server;
use crate::store::RegisterStore;
use crate::tally::Tally;
use crate::time::{MILLI, Nanos, SECOND};
use crate::trace::Trace;

/// The outsider's place among the nodes: a process like any other that takes part in nothing.
pub(crate) const OUTSIDER: usize = 0;

/// Everything.
pub(crate) struct World {
    pub(crate) options: WorldOptions,
    /// By their keys.
    pub(crate) elections: Vec<SimElection>,
    pub(crate) now: Nanos,
    pub(crate) rng: Rng,
    pub(crate) queue: Queue,
    pub(crate) store: RegisterStore,
    /// The server, where the store is one of sessions.
    pub(crate) sessions: Option<SessionWorld>,
    pub(crate) nodes: Vec<Node>,
    /// The longest extra delay while a slow spell lasts.
    pub(crate) spike: Option<Nanos>,
    /// The store answers nobody.
    pub(crate) outage: bool,
    pub(crate) heal: Option<Heal>,
    /// When the healing phase next looks how far it has come.
    pub(crate) progress_at: Nanos,
    pub(crate) tally: Tally,
    pub(crate) trace: Trace,
    pub(crate) violation: Option<Violation>,
    pub(crate) done: bool,
}

/// What came of a run.
#[derive(Debug)]
pub struct RunResult {
    /// Figures.
    pub tally: Tally,
    /// The first thing that was wrong.
    pub violation: Option<Violation>,
    /// Everything that happened, as a number.
    pub hash: u64,
    /// Everything that happened, as text, if it was wanted.
    pub story: Vec<String>,
}

/// Tells the story, if somebody listens.
macro_rules! say {
    ($world:expr, $($arg:tt)*) => {
        if $world.trace.is_verbose() {
            let line = format!("{:>14.6} {}", $world.now as f64 / 1e9, format_args!($($arg)*));
            $world.trace.line(line);
        }
    };
}
pub(crate) use say;

impl World {
    pub(crate) fn new(options: WorldOptions, verbose: bool) -> World {
        let mut rng = Rng::new(options.seed);
        // The first numbers of neighbouring seeds are kin; a few steps on they are strangers.
        for _ in 0..4 {
            rng.next_u64();
        }
        let mut world = World {
            elections: (0..options.elections).map(|_| SimElection::new(&options)).collect(),
            now: SECOND,
            rng,
            queue: Queue::default(),
            store: RegisterStore::new(options.elections),
            sessions: None,
            nodes: Vec::new(),
            spike: None,
            outage: false,
            heal: None,
            progress_at: 0,
            tally: Tally::default(),
            trace: Trace::new(verbose),
            violation: None,
            done: false,
            options,
        };
        if world.options.store == StoreKind::Session {
            let machine = world.draw_machine();
            world.sessions = Some(SessionWorld::new(Server::new(machine)));
        }
        world.add(None);
        for slot in 0..world.options.plans.len() {
            let at = world.now + world.rng.below(2 * SECOND);
            world.queue.push(at, WorldEvent::Restart(slot));
        }
        let (fault, whim) = (world.options.fault_every, world.options.whim_every);
        world.queue.push(world.now + fault, WorldEvent::Fault);
        world.queue.push(world.now + whim, WorldEvent::Whim);
        world.queue.push(world.now + world.options.span, WorldEvent::Heal);
        world
    }

    pub(crate) fn run(mut self) -> RunResult {
        while self.violation.is_none() && !self.done {
            let Some((at, event)) = self.queue.pop() else {
                self.judge(Err(BrokenInvariant::new("recovery", "the world stands still")));
                break;
            };
            self.now = self.now.max(at);
            self.tally.events += 1;
            self.trace.mix(self.now);
            self.happen(event);
        }
        self.tally.virtual_time = u128::from(self.now);
        RunResult {
            tally: self.tally,
            violation: self.violation,
            hash: self.trace.hash(),
            story: self.trace.into_lines(),
        }
    }

    fn happen(&mut self, event: WorldEvent) {
        match event {
            WorldEvent::Deliver(delivery) => self.deliver(*delivery),
            WorldEvent::Answer(node, slot, answer) => {
                slot.fill(*answer);
                self.step(node);
            }
            WorldEvent::GiveUp(node, slot) => {
                slot.fail(crate::connection::trouble(bellwether_core::ErrorKind::TimedOut, "no answer"));
                self.step(node);
            }
            WorldEvent::News(node, connection, change) => self.news(node, connection, *change),
            WorldEvent::Arrive(node, sent) => self.arrive(node, *sent),
            WorldEvent::Down(node, session, down) => self.come_down(node, session, *down),
            WorldEvent::Idle(session) => self.idle(session),
            WorldEvent::Alarm(node) => self.step(node),
            WorldEvent::ServerUp => self.server_up(),
            WorldEvent::Timer(seat) => self.timer(seat),
            WorldEvent::Resume(node) => self.resume(node),
            WorldEvent::WorkOver(seat, whose, epoch) => {
                if self.candidate(seat).who.incarnation == whose {
                    self.work_over(seat, epoch);
                }
            }
            WorldEvent::Reconnect(node, connection) => self.reconnect(node, connection),
            WorldEvent::Restart(slot) => self.restart(slot),
            WorldEvent::StartAgain(seat) => self.start_again(seat),
            WorldEvent::Recover(seat) => self.recover(seat),
            WorldEvent::Fault => self.next_fault(),
            WorldEvent::Whim => self.next_whim(),
            WorldEvent::Outsider(key) => self.outsider_asks_again(key),
            WorldEvent::Calm => self.spike = None,
            WorldEvent::StoreBack => {
                self.outage = false;
                self.read_backlog();
            }
            WorldEvent::Heal => self.begin_healing(),
            WorldEvent::Arrived(key) => self.all_arrived(key),
            WorldEvent::Progress => self.healing_progress(),
        }
    }

    /// Takes a verdict down. The first that is not fine ends the run.
    pub(crate) fn judge(&mut self, verdict: Verdict) {
        if let Err(finding) = verdict
            && self.violation.is_none()
        {
            say!(self, "VIOLATION {}: {}", finding.invariant, finding.said);
            self.violation = Some(Violation { finding, at: self.now });
        }
    }

    /// What is known of that election.
    pub(crate) fn election(&mut self, key: ElectionKey) -> &mut SimElection {
        &mut self.elections[key.0]
    }

    /// The elections of this world.
    pub(crate) fn keys(&self) -> impl Iterator<Item = ElectionKey> + use<> {
        (0..self.elections.len()).map(ElectionKey)
    }

    /// One of the elections.
    pub(crate) fn some_election(&mut self) -> ElectionKey {
        match self.elections.len() as u64 {
            1 => ElectionKey(0),
            many => ElectionKey(self.rng.below(many) as usize),
        }
    }

    pub(crate) fn candidate(&self, seat: Seat) -> &SimCandidate {
        &self.nodes[seat.node].candidates[seat.place]
    }

    pub(crate) fn candidate_mut(&mut self, seat: Seat) -> &mut SimCandidate {
        &mut self.nodes[seat.node].candidates[seat.place]
    }

    /// The candidates of a process.
    pub(crate) fn seats(&self, node: usize) -> impl Iterator<Item = Seat> + use<> {
        (0..self.nodes[node].candidates.len()).map(move |place| Seat { node, place })
    }

    /// The candidates of an election whose processes are alive.
    pub(crate) fn taking_part(&self, key: ElectionKey) -> Vec<Seat> {
        let all = self.alive().into_iter().flat_map(|node| self.seats(node));
        all.filter(|seat| self.candidate(*seat).key == key).collect()
    }

    fn leadership(&self, seat: Seat) -> Option<SimLeadership> {
        self.nodes[seat.node].leadership(seat.place, self.now)
    }

    /// Everybody who leads that election just now.
    fn leading(&self, key: ElectionKey) -> impl Iterator<Item = (Seat, SimLeadership)> {
        let seats = (0..self.nodes.len()).flat_map(|node| self.seats(node));
        let of = seats.filter(move |seat| self.candidate(*seat).key == key);
        of.filter_map(|seat| Some((seat, self.leadership(seat)?)))
    }

    /// A candidate that leads that election just now, if there is one.
    pub(crate) fn leader(&self, key: ElectionKey) -> Option<Seat> {
        self.leading(key).next().map(|(seat, _)| seat)
    }

    /// Every other candidate of that election that leads just now, in whatever process.
    pub(crate) fn others_leading(&self, key: ElectionKey, but: Option<Seat>) -> Vec<SimLeadership> {
        self.leading(key).filter(|(seat, _)| Some(*seat) != but).map(|(_, leadership)| leadership).collect()
    }

    /// Whether the process of that candidate leads by another one, too.
    pub(crate) fn leads_another(&self, seat: Seat) -> bool {
        self.seats(seat.node).any(|other| other != seat && self.leadership(other).is_some())
    }

    /// The processes that are alive and take part.
    pub(crate) fn alive(&self) -> Vec<usize> {
        let taking_part = |node: &usize| {
            let node = &self.nodes[*node];
            node.slot.is_some() && node.process.is_some()
        };
        (0..self.nodes.len()).filter(taking_part).collect()
    }

    /// The processes of one plan that are alive.
    pub(crate) fn alive_of(&self, slot: usize) -> usize {
        self.alive().into_iter().filter(|node| self.nodes[*node].slot == Some(slot)).count()
    }

    /// How long a message takes, one way.
    pub(crate) fn latency(&mut self) -> Nanos {
        let (shortest, longest) = self.options.latency;
        let usual = shortest + self.rng.below(longest - shortest);
        match self.spike {
            Some(most) if self.rng.one_in(2) => usual + self.rng.below(most),
            _ => usual,
        }
    }

    /// True so many times in ten thousand, while faults are about.
    pub(crate) fn chance(&mut self, of_10_000: u64) -> bool {
        self.heal.is_none() && of_10_000 > 0 && self.rng.below(10_000) < of_10_000
    }

    /// How late a process is woken: mostly hardly, now and then by a busy machine.
    pub(crate) fn lateness(&mut self) -> Nanos {
        if self.heal.is_none() && self.rng.one_in(20) {
            self.rng.below(20 * MILLI)
        } else {
            1_000 + self.rng.below(MILLI / 5)
        }
    }
}
