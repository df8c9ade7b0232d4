//! The world: who is in it, what is going to happen, and the loop that makes it happen.
//!
//! One thread, one queue, one source of randomness: the same seed gives the same world to the last bit.

use std::sync::Arc;

use bellwether_backend::{Backend, Lease};
use bellwether_core::{
    Candidate, CandidateId, Core, ElectionName, Incarnation, Input, Rng, Settings, StateName,
};

use crate::clock::Machine;
use crate::connection::{SimRegister, new_connection};
use crate::heal::Heal;
use crate::invariants::clones::Clones;
use crate::invariants::epochs::Epochs;
use crate::invariants::exclusion::{Losses, SimLeadership};
use crate::invariants::owners::Owners;
use crate::invariants::pauses::Pauses;
use crate::invariants::reservations::Reservations;
use crate::invariants::{BrokenInvariant, Verdict, Violation};
use crate::node::Node;
use crate::options::WorldOptions;
use crate::queue::{Queue, WorldEvent};
use crate::session::backend::SimSessions;
use crate::session::network::SessionWorld;
use crate::session::server::Server;
use crate::session::wire::{SharedSessionMail, Wire};
use crate::store::RegisterStore;
use crate::tally::Tally;
use crate::time::{MILLI, Nanos, SECOND};
use crate::trace::Trace;

/// The outsider's place among the nodes: a process like any other that takes part in nothing.
pub(crate) const OUTSIDER: usize = 0;

/// Everything.
pub(crate) struct World {
    pub(crate) options: WorldOptions,
    pub(crate) election: ElectionName,
    pub(crate) now: Nanos,
    pub(crate) rng: Rng,
    pub(crate) queue: Queue,
    pub(crate) store: RegisterStore,
    /// The server, where the store is one of sessions.
    pub(crate) sessions: Option<SessionWorld>,
    /// The lock was released and not taken since.
    pub(crate) is_released: bool,
    /// When the record was released for all, if nobody has claimed it since.
    pub(crate) released_at: Option<Nanos>,
    pub(crate) nodes: Vec<Node>,
    /// The longest extra delay while a slow spell lasts.
    pub(crate) spike: Option<Nanos>,
    /// The store answers nobody.
    pub(crate) outage: bool,
    pub(crate) heal: Option<Heal>,
    /// When the healing phase next looks how far it has come.
    pub(crate) progress_at: Nanos,
    /// How often the healing phase found a handover under way.
    pub(crate) handovers: u32,
    pub(crate) losses: Losses,
    pub(crate) clones: Clones,
    pub(crate) epochs: Epochs,
    pub(crate) owners: Owners,
    pub(crate) reservations: Reservations,
    pub(crate) pauses: Pauses,
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
            election: ElectionName::new("sim").expect("a good name"),
            now: SECOND,
            rng,
            queue: Queue::default(),
            store: RegisterStore::default(),
            sessions: None,
            is_released: false,
            released_at: None,
            nodes: Vec::new(),
            spike: None,
            outage: false,
            heal: None,
            progress_at: 0,
            handovers: 0,
            losses: Losses::default(),
            clones: Clones::default(),
            epochs: Epochs::default(),
            owners: Owners::default(),
            reservations: Reservations::new(options.ppm.1),
            pauses: Pauses::new(options.ppm, 2 * options.longest_ttl()),
            tally: Tally::default(),
            trace: Trace::new(verbose),
            violation: None,
            done: false,
            options,
        };
        if world.options.store == crate::options::StoreKind::Session {
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
            WorldEvent::Timer(node) => self.timer(node),
            WorldEvent::Resume(node) => self.resume(node),
            WorldEvent::WorkOver(node, whose, epoch) if self.nodes[node].who.incarnation == whose => {
                self.work_over(node, epoch);
            }
            WorldEvent::WorkOver(..) => {}
            WorldEvent::Reconnect(node, connection) => self.reconnect(node, connection),
            WorldEvent::Restart(slot) => self.restart(slot),
            WorldEvent::StartAgain(node) => self.start_again(node),
            WorldEvent::Recover(node) => self.recover(node),
            WorldEvent::Fault => self.next_fault(),
            WorldEvent::Whim => self.next_whim(),
            WorldEvent::Outsider => self.outsider_asks_again(),
            WorldEvent::Calm => self.spike = None,
            WorldEvent::StoreBack => {
                self.outage = false;
                self.read_backlog();
            }
            WorldEvent::Heal => self.begin_healing(),
            WorldEvent::Arrived => self.all_arrived(),
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

    /// A node that leads just now, if there is one.
    pub(crate) fn leader(&self) -> Option<usize> {
        (0..self.nodes.len()).find(|&node| self.nodes[node].leadership(self.now).is_some())
    }

    /// Every other node that leads just now.
    pub(crate) fn others_leading(&self, but: usize) -> Vec<SimLeadership> {
        let others = self.nodes.iter().enumerate().filter(|(node, _)| *node != but);
        others.filter_map(|(_, node)| node.leadership(self.now)).collect()
    }

    /// The processes that are alive and take part.
    pub(crate) fn alive(&self) -> Vec<usize> {
        let taking_part = |node: &usize| {
            let node = &self.nodes[*node];
            node.slot.is_some() && node.process.is_some()
        };
        (0..self.nodes.len()).filter(taking_part).collect()
    }

    /// The processes of one candidate that are alive.
    pub(crate) fn alive_of(&self, slot: usize) -> usize {
        self.alive().into_iter().filter(|node| self.nodes[*node].slot == Some(slot)).count()
    }

    /// A candidate is started: a new incarnation of an old id.
    pub(crate) fn restart(&mut self, slot: usize) {
        if self.alive_of(slot) >= 2 {
            return;
        }
        let node = self.add(Some(slot));
        say!(self, "{} starts as {:?}", node, self.nodes[node].who);
        self.start(node);
    }

    pub(crate) fn start(&mut self, node: usize) {
        let Some(process) = &self.nodes[node].process else { return };
        if process.core.state() != StateName::Stopped {
            return;
        }
        let backend = Arc::clone(&process.backend);
        if !crate::connection::lock(&self.nodes[node].connection).followed {
            backend.follow(&self.election);
        }
        self.tell(node, Input::Start);
        self.tell(node, Input::Health(!self.nodes[node].sick));
        self.step(node);
    }

    fn add(&mut self, slot: Option<usize>) -> usize {
        let settings = match slot {
            Some(slot) => self.options.plans[slot].settings.clone(),
            None => bellwether_core::Settings::default(),
        };
        let name = slot.map_or("outsider".to_owned(), |slot| format!("candidate-{slot}"));
        let incarnation = self.draw_incarnation();
        let who = Candidate { id: CandidateId::new(name).expect("a good name"), incarnation };
        let machine = self.draw_machine();
        let connection = new_connection();
        let mail = SharedSessionMail::default();
        let mut lease = None;
        let backend: Arc<dyn Backend> = if self.sessions.is_some() {
            let (clock, node) = (machine.face(), self.nodes.len());
            let wire = Wire { node, clock, mail: Arc::clone(&mail), connection: Arc::clone(&connection) };
            Arc::new(SimSessions::new(wire, settings.timing().ttl()))
        } else {
            let register =
                SimRegister::new(Arc::clone(&connection), self.store.facts(), self.options.crash_proof);
            Arc::clone(lease.insert(Arc::new(Lease::new(register, machine.face())))) as _
        };
        let core = self.candidate(settings, who);
        self.nodes.push(Node { lease, ..Node::new(slot, machine, connection, mail, core, backend) });
        self.nodes.len() - 1
    }

    /// As the driver sets one up on such a store. Every second one on a register spreads its renewals, as one among very many
    /// elections would.
    pub(crate) fn candidate(&mut self, settings: Settings, who: Candidate) -> Core {
        let seed = self.rng.next_u64();
        let mut core = Core::new(settings, who, seed);
        if self.options.staggered {
            core.stagger_claims();
        }
        if self.options.store == crate::options::StoreKind::Register && seed.is_multiple_of(2) {
            core.jitter_renewals();
        }
        core
    }

    pub(crate) fn draw_incarnation(&mut self) -> Incarnation {
        Incarnation::from_bits(u128::from(self.rng.next_u64()) << 64 | u128::from(self.rng.next_u64()))
    }

    /// A clock at one end of what is tolerated, half of the time: that is where margins are tested.
    fn draw_machine(&mut self) -> Machine {
        let (slowest, fastest) = self.options.ppm;
        let ppm = match self.rng.below(4) {
            0 => slowest,
            1 => fastest,
            _ => slowest + self.rng.below(fastest - slowest + 1),
        };
        let hour = 3_600 * SECOND;
        let wall = self.rng.below(2 * hour) as i64 - hour as i64;
        Machine::new(self.rng.below(1_000 * hour), ppm, 1_800_000_000 * SECOND as i64 + wall)
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
