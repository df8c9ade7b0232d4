//! The loop: what happens, what goes wrong, and whether a leader appears when nothing does any more.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::{Candidate, Core, Epoch, Incarnation, Input, Rng, Signal, StateName};
use bellwether_raft::command::Command;
use bellwether_raft::keepalive::Round;

use super::client::{Ask, Client, Reply, Return};
use super::group::Group;
use super::process::{Process, RaftCandidate};
use crate::RunResult;
use crate::clock::Machine;
use crate::faults::WorldFault;
use crate::invariants::alternation::Alternation;
use crate::invariants::epochs::Epochs;
use crate::invariants::exclusion::Losses;
use crate::invariants::{BrokenInvariant, Verdict, Violation};
use crate::key::{ElectionKey, Seat};
use crate::options::{CandidatePlan, WorldOptions};
use crate::tally::Tally;
use crate::time::{MILLI, Nanos, SECOND};
use crate::trace::Trace;

pub(super) const NODES: usize = 3;

/// From the end of the faults to a leader, in ttls: old sessions expire, and a candidate may still back off, cool down or stop its work.
const RECOVERY_TTLS: u64 = 20;

/// And so long after them nobody loses the lead any more, but by priority.
const STEADY_TTLS: u64 = 12;

/// Runs the world of these options.
pub(crate) fn run(options: WorldOptions, verbose: bool) -> RunResult {
    RaftWorld::new(options, verbose).run()
}

/// Something that is going to happen.
#[derive(Debug)]
pub(super) enum Happening {
    /// A message reaches the cluster.
    Arrive(Return, Ask),
    /// An answer reaches a process; `None` when its client gives up.
    Answer(Return, Option<Reply>),
    /// The client sends the same once more.
    Again(Return),
    /// News reaches a process.
    News(usize, u32, ElectionKey, Box<Signal>),
    Timer(Seat, u32),
    /// A process keeps its session alive.
    Beat(usize, u32),
    WorkOver(Seat, u32, Epoch),
    Start(Seat),
    /// A majority has everything up to that entry.
    Commit(u64),
    /// A node asks a majority whether it still leads.
    BeginRound(usize),
    /// The majority answers: whether it does.
    Majority(usize, Round),
    /// The answers are here.
    Confirm(usize, Round, bool),
    NodeTimer(usize),
    /// A node proposes what its timers decided.
    Propose(usize, Command),
    /// A new leader has applied its first entry.
    Ready(usize, u64),
    /// An old leader learns that it is one.
    Deposed(usize, u64),
    Elect,
    Fault,
    Heal,
    /// By now somebody must lead.
    Judgement,
}

pub(super) struct RaftWorld {
    pub(super) options: WorldOptions,
    pub(super) now: Nanos,
    pub(super) rng: Rng,
    queue: BTreeMap<(Nanos, u64), Happening>,
    planned: u64,
    pub(super) group: Group,
    pub(super) processes: Vec<Process>,
    pub(super) healing: bool,
    /// From then on nobody loses the lead, but by priority.
    pub(super) steady_from: Nanos,
    /// By election.
    pub(super) epochs: Vec<Epochs>,
    pub(super) losses: Losses,
    pub(super) tally: Tally,
    pub(super) trace: Trace,
    violation: Option<Violation>,
    done: bool,
    /// The elections that nobody has led at the judgement.
    unled: BTreeSet<ElectionKey>,
    /// How often nobody may lead at the judgement before it counts.
    second_looks: u32,
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
pub(super) use say;

impl RaftWorld {
    fn new(options: WorldOptions, verbose: bool) -> RaftWorld {
        let mut rng = Rng::new(options.seed);
        for _ in 0..4 {
            rng.next_u64();
        }
        let machines = (0..NODES).map(|_| machine(&mut rng, options.ppm)).collect();
        let processes = options.plans.iter().map(|plan| Process {
            machine: machine(&mut rng, options.ppm),
            candidates: plan.candidates.iter().map(candidate).collect(),
            is_up: false,
            life: 0,
            client: Client::default(),
            frozen_until: 0,
            cut_until: 0,
            talks_to: None,
        });
        let processes: Vec<Process> = processes.collect();
        let mut world = RaftWorld {
            now: SECOND,
            queue: BTreeMap::new(),
            planned: 0,
            group: Group::new(machines),
            processes,
            healing: false,
            steady_from: Nanos::MAX,
            epochs: (0..options.elections).map(|_| Epochs::default()).collect(),
            losses: Losses::default(),
            tally: Tally::default(),
            trace: Trace::new(verbose),
            violation: None,
            done: false,
            second_looks: 2,
            unled: (0..options.elections).map(ElectionKey).collect(),
            rng,
            options,
        };
        world.plan(0, Happening::Elect);
        for slot in 0..world.processes.len() {
            let after = world.rng.below(2 * SECOND);
            world.start_all(slot, after);
        }
        world.plan(world.options.fault_every, Happening::Fault);
        world.plan(world.options.span, Happening::Heal);
        world
    }

    fn run(mut self) -> RunResult {
        while self.violation.is_none()
            && !self.done
            && let Some(((at, _), happening)) = self.queue.pop_first()
        {
            self.now = self.now.max(at);
            self.tally.events += 1;
            self.trace.mix(self.now);
            self.happen(happening);
        }
        self.tally.virtual_time = u128::from(self.now);
        RunResult {
            tally: self.tally,
            violation: self.violation,
            hash: self.trace.hash(),
            story: self.trace.into_lines(),
        }
    }

    fn happen(&mut self, happening: Happening) {
        if let Some(until) = self.waits_for(&happening) {
            self.plan(until - self.now + 1, happening);
            return;
        }
        match happening {
            Happening::Arrive(from, ask) => self.arrive(from, ask),
            Happening::Answer(to, reply) => self.answered(to, reply),
            Happening::Again((process, life, token)) => self.send_again(process, life, token),
            Happening::News(process, life, key, signal) => self.news(process, life, key, &signal),
            Happening::Timer(seat, life) => self.timer(seat, life),
            Happening::Beat(process, life) => self.beat(process, life),
            Happening::WorkOver(seat, life, epoch) => self.work_over(seat, life, epoch),
            Happening::Start(seat) => self.start(seat),
            Happening::Commit(number) => self.commit(number),
            Happening::BeginRound(node) => self.begin_round(node),
            Happening::Majority(node, round) => {
                let confirmed = self.group.is_leader(node) && round.term == self.group.term;
                let after = self.latency();
                self.plan(after, Happening::Confirm(node, round, confirmed));
            }
            Happening::Confirm(node, round, confirmed) => self.confirm(node, round, confirmed),
            Happening::NodeTimer(node) => self.node_timer(node),
            Happening::Propose(node, command) => self.propose(node, &command),
            Happening::Ready(node, term) => self.ready(node, term),
            Happening::Deposed(node, term) => self.deposed(node, term),
            Happening::Elect if self.healing => {}
            Happening::Elect => {
                self.elect();
                let ttl = self.options.longest_ttl();
                let next = ttl / 4 + self.rng.below(8 * ttl);
                self.plan(next, Happening::Elect);
            }
            Happening::Fault => self.fault(),
            Happening::Heal => self.heal(),
            Happening::Judgement => self.judgement(),
        }
    }

    /// What is meant for a process that stands still waits for it.
    fn waits_for(&self, happening: &Happening) -> Option<Nanos> {
        let process = match happening {
            Happening::Answer((process, ..), _)
            | Happening::Again((process, ..))
            | Happening::News(process, ..)
            | Happening::Beat(process, _) => *process,
            Happening::Timer(seat, _) | Happening::WorkOver(seat, ..) => seat.node,
            _ => return None,
        };
        Some(self.processes[process].frozen_until).filter(|until| self.now < *until)
    }

    pub(super) fn plan(&mut self, after: Nanos, happening: Happening) {
        self.planned += 1;
        self.queue.insert((self.now.saturating_add(after), self.planned), happening);
    }

    pub(super) fn judge(&mut self, verdict: Verdict) {
        if let Err(finding) = verdict
            && self.violation.is_none()
        {
            say!(self, "VIOLATION {}: {}", finding.invariant, finding.said);
            self.violation = Some(Violation { finding, at: self.now });
        }
    }

    /// How long a message takes, one way.
    pub(super) fn latency(&mut self) -> Nanos {
        let (shortest, longest) = self.options.latency;
        let usual = shortest + self.rng.below(longest - shortest);
        if self.chance(self.options.net.answer_late) {
            self.tally.count(WorldFault::AnswerLate);
            return usual + self.rng.below(2 * self.options.longest_ttl());
        }
        usual
    }

    /// True so many times in ten thousand, while faults are about.
    pub(super) fn chance(&mut self, of_10_000: u64) -> bool {
        !self.healing && of_10_000 > 0 && self.rng.below(10_000) < of_10_000
    }

    /// Starts the candidates of a process.
    pub(super) fn start_all(&mut self, slot: usize, after: Nanos) {
        for seat in self.seats(slot) {
            self.plan(after, Happening::Start(seat));
        }
    }

    fn start(&mut self, seat: Seat) {
        let process = &self.processes[seat.node];
        let candidate = &process.candidates[seat.place];
        if candidate.core.as_ref().is_some_and(|core| core.state() != StateName::Stopped) {
            return;
        }
        // In the same process, only when the cluster knows that the start before has left.
        let has_left = candidate.retired && !process.client.is_leaving(&candidate.who);
        if candidate.core.is_some() && !has_left {
            self.plan(self.options.shortest_ttl() / 3, Happening::Start(seat));
            return;
        }
        let bits = u128::from(self.rng.next_u64()) << 64 | u128::from(self.rng.next_u64());
        let settings = self.options.plans[seat.node].candidates[seat.place].settings.clone();
        let seed = self.rng.next_u64();
        let process = &mut self.processes[seat.node];
        let (life, is_new) = (process.life, !std::mem::replace(&mut process.is_up, true));
        let candidate = &mut process.candidates[seat.place];
        candidate.who.incarnation = Incarnation::from_bits(bits);
        candidate.core = Some(Core::new(settings, candidate.who.clone(), seed));
        (candidate.alternation, candidate.timer, candidate.retired) =
            (Alternation::default(), (Nanos::MAX, None), false);
        say!(self, "{seat} starts as {bits:x}");
        if is_new {
            self.plan(self.options.longest_ttl() / 3, Happening::Beat(seat.node, life));
        }
        self.tell(seat, Input::Start);
        self.tell(seat, Input::Health(true));
    }

    pub(super) fn seats(&self, node: usize) -> impl Iterator<Item = Seat> + use<> {
        (0..self.processes[node].candidates.len()).map(move |place| Seat { node, place })
    }

    fn heal(&mut self) {
        say!(self, "faults stop");
        self.healing = true;
        for slot in 0..self.processes.len() {
            let process = &mut self.processes[slot];
            (process.frozen_until, process.cut_until) = (0, 0);
            self.start_all(slot, MILLI);
        }
        self.steady_from = self.now + STEADY_TTLS * self.options.longest_ttl();
        self.plan(RECOVERY_TTLS * self.options.longest_ttl(), Happening::Judgement);
    }

    fn judgement(&mut self) {
        let mut unled = std::mem::take(&mut self.unled);
        unled.retain(|key| self.leading(*key).next().is_none());
        self.unled = unled;
        if !self.unled.is_empty() && self.second_looks > 0 {
            // Between two leaderships there is a moment without one.
            self.second_looks -= 1;
            self.plan(self.options.longest_ttl(), Happening::Judgement);
            return;
        }
        self.done = true;
        if let Some(key) = self.unled.first() {
            let said = format!("nobody leads {key:?} {RECOVERY_TTLS} ttls after the faults");
            self.judge(Err(BrokenInvariant::new("recovery", said)));
        }
    }
}

fn candidate(plan: &CandidatePlan) -> RaftCandidate {
    let who = Candidate { id: plan.id.clone(), incarnation: Incarnation::from_bits(0) };
    RaftCandidate::new(plan.key, who)
}

/// A clock at one end of what is tolerated, half of the time.
fn machine(rng: &mut Rng, (slowest, fastest): (u64, u64)) -> Machine {
    let ppm = match rng.below(4) {
        0 => slowest,
        1 => fastest,
        _ => slowest + rng.below(fastest - slowest + 1),
    };
    Machine::new(rng.below(3_600_000 * SECOND), ppm, 0)
}
