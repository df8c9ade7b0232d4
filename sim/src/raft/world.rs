//! The loop: what happens, what goes wrong, and whether a leader appears when nothing does any more.

use std::collections::BTreeMap;

use bellwether_core::{
    Candidate, CandidateId, Core, ElectionName, Epoch, Incarnation, Input, Rng, Signal, StateName,
};
use bellwether_raft::command::Command;
use bellwether_raft::keepalive::Round;

use super::client::{Ask, Client, Reply, Return};
use super::group::Group;
use super::process::Process;
use crate::RunResult;
use crate::clock::Machine;
use crate::faults::WorldFault;
use crate::invariants::alternation::Alternation;
use crate::invariants::epochs::Epochs;
use crate::invariants::exclusion::Losses;
use crate::invariants::{BrokenInvariant, Verdict, Violation};
use crate::options::WorldOptions;
use crate::tally::Tally;
use crate::time::{MILLI, Nanos, SECOND};
use crate::trace::Trace;

const NODES: usize = 3;

/// From the end of the faults to a leader, in ttls: old sessions expire, and a candidate may still back off, cool down or stop its work.
const RECOVERY_TTLS: u64 = 20;

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
    News(usize, u32, Box<Signal>),
    Timer(usize, u32),
    Beat(usize, u32),
    WorkOver(usize, u32, Epoch),
    Start(usize),
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
    pub(super) election: ElectionName,
    pub(super) now: Nanos,
    pub(super) rng: Rng,
    queue: BTreeMap<(Nanos, u64), Happening>,
    planned: u64,
    pub(super) group: Group,
    pub(super) processes: Vec<Process>,
    pub(super) healing: bool,
    pub(super) epochs: Epochs,
    pub(super) losses: Losses,
    pub(super) tally: Tally,
    pub(super) trace: Trace,
    violation: Option<Violation>,
    done: bool,
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
        let processes = (0..options.plans.len()).map(|slot| Process {
            machine: machine(&mut rng, options.ppm),
            who: Candidate {
                id: CandidateId::new(format!("c{slot}")).expect("a good name"),
                incarnation: Incarnation::from_bits(0),
            },
            core: None,
            life: 0,
            client: Client::default(),
            frozen_until: 0,
            cut_until: 0,
            work: None,
            alternation: Alternation::default(),
            timer: (Nanos::MAX, None),
            talks_to: None,
            retired: true,
        });
        let processes: Vec<Process> = processes.collect();
        let mut world = RaftWorld {
            election: ElectionName::new("sim").expect("a good name"),
            now: SECOND,
            queue: BTreeMap::new(),
            planned: 0,
            group: Group::new(machines),
            processes,
            healing: false,
            epochs: Epochs::default(),
            losses: Losses::default(),
            tally: Tally::default(),
            trace: Trace::new(verbose),
            violation: None,
            done: false,
            second_looks: 2,
            rng,
            options,
        };
        world.plan(0, Happening::Elect);
        for slot in 0..world.processes.len() {
            let after = world.rng.below(2 * SECOND);
            world.plan(after, Happening::Start(slot));
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
            Happening::News(process, life, signal) => self.news(process, life, *signal),
            Happening::Timer(process, life) => self.timer(process, life),
            Happening::Beat(process, life) => self.beat(process, life),
            Happening::WorkOver(process, life, epoch) => self.work_over(process, life, epoch),
            Happening::Start(process) => self.start(process),
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
            | Happening::Timer(process, _)
            | Happening::Beat(process, _)
            | Happening::WorkOver(process, ..) => *process,
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

    fn start(&mut self, slot: usize) {
        if self.processes[slot].core.as_ref().is_some_and(|core| core.state() != StateName::Stopped) {
            return;
        }
        // In the same process, only when the cluster knows that the start before has left.
        let process = &self.processes[slot];
        let has_left = process.retired && process.client.unretired.is_none();
        if process.core.is_some() && !has_left {
            self.plan(self.options.shortest_ttl() / 3, Happening::Start(slot));
            return;
        }
        let bits = u128::from(self.rng.next_u64()) << 64 | u128::from(self.rng.next_u64());
        let (settings, seed) = (self.options.plans[slot].settings.clone(), self.rng.next_u64());
        let process = &mut self.processes[slot];
        process.who.incarnation = Incarnation::from_bits(bits);
        let is_new = process.core.is_none();
        if is_new {
            process.client = Client::default();
        }
        process.core = Some(Core::new(settings, process.who.clone(), seed));
        (process.alternation, process.timer, process.retired) =
            (Alternation::default(), (Nanos::MAX, None), false);
        let life = process.life;
        say!(self, "{slot} starts as {bits:x}");
        if is_new {
            self.plan(self.options.longest_ttl() / 3, Happening::Beat(slot, life));
        }
        self.tell(slot, Input::Start);
        self.tell(slot, Input::Health(true));
    }

    /// Something goes wrong with a process, or somebody wants something of it.
    fn fault(&mut self) {
        if self.healing {
            return;
        }
        let next = self.options.fault_every / 2 + self.rng.below(self.options.fault_every);
        self.plan(next, Happening::Fault);
        let slot = self.rng.below(self.processes.len() as u64) as usize;
        let ttl = self.options.longest_ttl();
        let span = match self.rng.below(3) {
            0 => self.rng.below(ttl / 4),
            1 => self.rng.below(ttl),
            _ => self.rng.below(3 * ttl),
        };
        let until = self.now + span;
        match self.rng.below(8) {
            0 | 1 => {
                say!(self, "{slot} stands still for {span}ns");
                self.tally.count(WorldFault::Pause);
                self.processes[slot].frozen_until = until;
            }
            2 | 3 => {
                say!(self, "{slot} is cut off for {span}ns");
                self.tally.count(WorldFault::Cut);
                self.processes[slot].cut_until = until;
            }
            4 => {
                say!(self, "{slot} crashes");
                self.tally.count(WorldFault::Crash);
                let process = &mut self.processes[slot];
                (process.core, process.work, process.frozen_until) = (None, None, 0);
                process.life += 1;
                self.plan(span, Happening::Start(slot));
            }
            5 => {
                self.tally.count(WorldFault::StepDown);
                let to = self.rng.one_in(2).then(|| self.processes[0].who.id.clone());
                self.tell(slot, Input::StepDown { to });
            }
            6 => {
                self.tally.count(WorldFault::StopStart);
                self.tell(slot, Input::Stop);
            }
            _ => {
                say!(self, "node {} starts again", self.group.leader);
                // The leader's table is lost, and somebody else may lead next.
                self.elect();
                let node = self.rng.below(NODES as u64) as usize;
                if !self.group.is_leader(node) {
                    let lost = &mut self.group.nodes[node];
                    lost.table.lost_leadership();
                    (lost.leads, lost.stale) = (None, None);
                }
            }
        }
    }

    fn heal(&mut self) {
        say!(self, "faults stop");
        self.healing = true;
        for slot in 0..self.processes.len() {
            let process = &mut self.processes[slot];
            (process.frozen_until, process.cut_until) = (0, 0);
            self.plan(MILLI, Happening::Start(slot));
        }
        self.plan(RECOVERY_TTLS * self.options.longest_ttl(), Happening::Judgement);
    }

    fn judgement(&mut self) {
        let leads = self.processes.iter().any(|process| process.leadership(self.now).is_some());
        if !leads && self.second_looks > 0 {
            // Between two leaderships there is a moment without one.
            self.second_looks -= 1;
            self.plan(self.options.longest_ttl(), Happening::Judgement);
            return;
        }
        self.done = true;
        if !leads {
            let said = format!("nobody leads {RECOVERY_TTLS} ttls after the faults");
            self.judge(Err(BrokenInvariant::new("recovery", said)));
        }
    }
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
