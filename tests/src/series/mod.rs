//! Leader after leader, each ended in another way, all with a witness as their command.
//!
//! The judge has three questions after every round: did a witness meet another, is a process of an earlier leadership left,
//! and did the next leader come within the bound that `bellwether explain` prints?

mod bounds;
mod ending;
mod figures;
mod leader_processes;

use std::time::Duration;

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use rustix::process::Signal;

use crate::{Candidate, EventLine, PATIENCE, Stage, Surroundings, overlaps};
pub use bounds::Bounds;
pub use ending::Ending;
pub use figures::Figures;
use leader_processes::LeaderProcesses;

const TTL: &str = "1s";
/// A command that ignores TERM is killed after this; the bound on the next leader has room for it.
const STOP_TIMEOUT: &str = "100ms";
const CANDIDATES: usize = 3;

/// Three candidates on a stage.
pub struct Series {
    stage: Stage,
    surroundings: Surroundings,
    bounds: Bounds,
    running: Vec<Candidate>,
    gone: Vec<Candidate>,
    started: usize,
    leader: Leader,
    /// Ended by the round, with the exit code that it has to have.
    leaving: Vec<(Candidate, Option<i32>)>,
    figures: Figures,
}

/// Who leads, and since when.
#[derive(Clone, Copy, Debug)]
struct Leader {
    at: usize,
    epoch: u64,
    acquired: Boot,
}

/// How the leader of a round ends, if it does.
#[derive(Clone, Copy, Debug)]
enum Leaving {
    With(i32),
    Killed(Boot),
}

impl Series {
    /// Candidates of which one leads and works; `None` where these surroundings are not to be had. The first leader's
    /// witness has the manners that `first` needs.
    pub fn new(surroundings: Surroundings, first: Ending) -> Option<Series> {
        let stage = Stage::new(surroundings)?;
        stage.manners(first.manners(surroundings));
        let mut series = Series {
            stage,
            surroundings,
            bounds: Bounds::explained(TTL),
            running: Vec::new(),
            gone: Vec::new(),
            started: 0,
            leader: Leader { at: 0, epoch: 0, acquired: boot_now() },
            leaving: Vec::new(),
            figures: Figures::default(),
        };
        series.fill_up();
        series.leader = series.next_leader(0);
        Some(series)
    }

    /// Does this to the leader, sees to it that the next one's witness has the manners that `next` needs, and judges.
    pub fn round(&mut self, way: Ending, next: Ending) {
        let cast = self.cast();
        self.stage.manners(next.manners(self.surroundings));
        let before = self.leader;
        let done = way.act(self, cast);
        self.leader = self.next_leader(before.epoch);
        let (took, bound) = (self.leader.acquired.since(done.since), done.bound);
        self.figures.note(way, took, bound);
        self.figures.two_at_once(way, &self.stage.take_two_at_once());
        // At this instant, not some time later; and once more when those that were stopped have gone on.
        self.note_orphans(way);
        done.put_right(self);
        self.note_orphans(way);
        self.fill_up();
    }

    /// Those rounds, one after the other.
    pub fn rounds(&mut self, ways: &[Ending]) {
        for (at, way) in ways.iter().enumerate() {
            self.round(*way, *ways.get(at + 1).unwrap_or(way));
        }
    }

    /// Ends all of it, and judges once more: nobody is left, and by their own words no two led at once.
    pub fn end(mut self) -> Figures {
        for candidate in &mut self.running {
            candidate.drain();
        }
        self.figures.overlaps(&overlaps(self.running.iter().chain(&self.gone)));
        for candidate in &mut self.running {
            candidate.kill();
        }
        self.figures.left(&self.stage.emptied());
        self.figures
    }

    fn note_orphans(&mut self, way: Ending) {
        let orphans = self.stage.orphans(Some(self.leader.epoch));
        self.figures.orphans(way, &orphans);
        // They must not be counted twice, nor hold the next witness up.
        orphans.iter().for_each(|orphan| orphan.signal(Signal::KILL));
    }

    /// The processes of whoever leads now.
    fn cast(&mut self) -> LeaderProcesses {
        loop {
            if let Some(cast) = LeaderProcesses::of(self) {
                return cast;
            }
            self.leader = self.next_leader(self.leader.epoch);
        }
    }

    fn fill_up(&mut self) {
        while self.running.len() < CANDIDATES {
            let id = format!("c{}", self.started);
            self.started += 1;
            let mut candidate = self.stage.candidate(&id, &["--ttl", TTL, "--stop-timeout", STOP_TIMEOUT]);
            candidate.joined();
            self.running.push(candidate);
        }
    }

    /// The leader ends: with this code, or killed at that instant.
    fn leader_leaves(&mut self, how: Leaving) {
        let mut candidate = self.running.remove(self.leader.at);
        let code = match how {
            Leaving::With(code) => Some(code),
            Leaving::Killed(at) => {
                candidate.killed = Some(at);
                None
            }
        };
        self.leaving.push((candidate, code));
    }

    /// Those that were to end have ended.
    fn see_off(&mut self) {
        for (mut candidate, code) in std::mem::take(&mut self.leaving) {
            let ended = candidate.ended();
            assert!(code.is_none() || ended.code == code, "ended with {:?}: {}", ended.code, ended.stderr);
            self.gone.push(candidate);
        }
    }

    /// Waits for the next witness at work under a later leadership.
    fn next_leader(&mut self, after: u64) -> Leader {
        let deadline = boot_now() + PATIENCE;
        while boot_now() < deadline {
            for (at, candidate) in self.running.iter_mut().enumerate() {
                candidate.wait("witness", Duration::from_millis(1));
                // Among all that it said, since who waited for something else may have heard it.
                let works = |line: &&EventLine| line.event() == "witness" && line.epoch() > Some(after);
                let Some(epoch) = candidate.said.iter().rev().find(works).and_then(EventLine::epoch) else {
                    continue;
                };
                let is_it = |line: &&EventLine| line.event() == "acquired" && line.epoch() == Some(epoch);
                // A witness may be heard before its leader is.
                let acquired = match candidate.said.iter().find(is_it) {
                    Some(line) => line.boot(),
                    None => candidate.expect("acquired").boot(),
                };
                return Leader { at, epoch, acquired };
            }
        }
        panic!("nobody leads after epoch {after}; alive: {:#?}", self.stage.alive());
    }
}
