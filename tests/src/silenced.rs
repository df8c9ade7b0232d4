//! Leaders on PostgreSQL that fall silent without dying: stopped, or cut off from the server without a word.
//!
//! Each run is an election of its own with a leader and a follower, real `bellwether run` processes with a witness as their
//! command, on machines of their own: two network namespaces, and a third for the server. Several runs go side by side, so that
//! many are done in the time of a few ttls. When a leader was replaced it is let go on, and says itself until when it
//! had believed: that, against the instant at which its successor began to lead, is the verdict.

use std::fmt;
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use bellwether_support::netns::{Network, Node};
use bellwether_support::servers::postgres::Server;
use rustix::process::Signal;

use crate::{Candidate, bellwether, binary, overlaps};

/// The ttl of every run.
pub const TTL: Duration = Duration::from_secs(2);
/// How much longer than the ttl a successor may take, by the median.
pub const SLACK: Duration = Duration::from_millis(300);

/// How a leader falls silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// SIGSTOP.
    Stopped,
    /// Its packets vanish.
    CutOff,
}

/// Three machines: the leaders', everybody else's, and the server's.
pub struct Silences {
    leaders: Node,
    others: Node,
    server: Server,
    runs: usize,
    network: Network,
}

impl Silences {
    /// With a server that has just been started; `None`, said aloud, where this is not root.
    pub fn new() -> Option<Silences> {
        let mut network = Network::new()?;
        let (leaders, others, machine) = (network.node(), network.node(), network.node());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let server = runtime.block_on(Server::start_with(TTL, Some(&machine), &[]));
        Some(Silences { leaders, others, server, runs: 0, network })
    }

    /// So many runs, so many of them at once.
    pub fn series(&mut self, how: Silence, runs: usize, at_once: usize) -> Silenced {
        let mut all = Silenced { how, took: Vec::new(), spare: Vec::new(), complaints: Vec::new() };
        while all.took.len() < runs {
            self.side_by_side(how, at_once.min(runs - all.took.len()), &mut all);
        }
        all
    }

    fn side_by_side(&mut self, how: Silence, count: usize, all: &mut Silenced) {
        let mut runs: Vec<Run> = (0..count).map(|_| self.run()).collect();
        match how {
            Silence::Stopped => runs.iter_mut().for_each(|run| run.silent = run.leader.signal(Signal::STOP)),
            Silence::CutOff => {
                let before = boot_now();
                self.network.cut(&self.leaders);
                runs.iter_mut().for_each(|run| run.silent = before);
            }
        }
        for run in &mut runs {
            run.replaced = run.follower.expect("acquired").boot();
            run.follower.heard("witness");
        }
        match how {
            Silence::Stopped => runs.iter_mut().for_each(|run| _ = run.leader.signal(Signal::CONT)),
            Silence::CutOff => self.network.heal(&self.leaders),
        }
        for run in runs {
            run.judge(all);
        }
    }

    /// A leader at work, and a follower that knows it.
    fn run(&mut self) -> Run {
        self.runs += 1;
        let election = format!("job-{}", self.runs);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let start = |node: &Node, id: &str| {
            let mut command = node.command(bellwether());
            command.args(["--backend", &self.server.url(), "--id", id, "run", &election, "--events"]);
            command.args(["--ttl", &format!("{}ms", TTL.as_millis()), "--"]);
            command.arg(binary::beside("bellwether-witness")).arg(directory.path());
            Candidate::start(command)
        };
        let mut leader = start(&self.leaders, "leader");
        leader.expect("acquired");
        leader.heard("witness");
        let mut follower = start(&self.others, "follower");
        follower.joined();
        Run { leader, follower, directory, silent: boot_now(), replaced: boot_now() }
    }
}

struct Run {
    leader: Candidate,
    follower: Candidate,
    directory: tempfile::TempDir,
    silent: Boot,
    replaced: Boot,
}

impl Run {
    fn judge(mut self, all: &mut Silenced) {
        let lost = self.leader.heard("lost");
        let belief = lost.instant("deadline_boot_ns").expect("a deadline");
        self.follower.drain();
        let found = overlaps([&self.leader, &self.follower]);
        all.complaints.extend(found.iter().map(|overlap| format!("{overlap:?}")));
        if let Ok(said) = std::fs::read_to_string(self.directory.path().join("two")) {
            all.complaints.push(format!("two witnesses at once: {said}"));
        }
        if self.replaced < belief {
            let early = belief.since(self.replaced);
            all.complaints.push(format!("replaced {early:?} before its own belief was over"));
        }
        all.took.push(self.replaced.since(self.silent));
        all.spare.push(self.replaced.since(belief));
        for mut candidate in [self.leader, self.follower] {
            candidate.signal(Signal::TERM);
            let ended = candidate.ended();
            if ended.code != Some(0) {
                all.complaints.push(format!("ended with {:?}: {}", ended.code, ended.stderr));
            }
        }
    }
}

/// What came of a series.
#[derive(Debug)]
pub struct Silenced {
    how: Silence,
    /// From the silence to the next leader.
    took: Vec<Duration>,
    /// From the end of the old leader's belief to the next leader.
    spare: Vec<Duration>,
    complaints: Vec<String>,
}

impl Silenced {
    /// What must not have been, a sentence each.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// From the silence to the next leader: the middle and the most.
    pub fn took(&self) -> (Duration, Duration) {
        let mut took = self.took.clone();
        took.sort_unstable();
        (took[took.len() / 2], took[took.len() - 1])
    }

    /// The heading of what [`Silenced`] prints.
    pub fn heading() -> String {
        format!(
            "{:<12}{:>6}{:>10}{:>18}{:>16}{:>26}{:>10}",
            "leader", "runs", "overlaps", "replaced, median", "max", "least after its belief", "bound"
        )
    }
}

impl fmt::Display for Silenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.how {
            Silence::Stopped => "stopped",
            Silence::CutOff => "cut off",
        };
        let ms = |span: Duration| format!("{:.0} ms", span.as_secs_f64() * 1e3);
        let (median, most) = self.took();
        let spare = self.spare.iter().min().copied().unwrap_or_default();
        write!(
            f,
            "{how:<12}{:>6}{:>10}{:>18}{:>16}{:>26}{:>10}",
            self.took.len(),
            self.complaints.len(),
            ms(median),
            ms(most),
            ms(spare),
            ms(TTL + SLACK)
        )
    }
}
