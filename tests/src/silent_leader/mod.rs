//! Leaders on a server that fall silent: stopped, cut off from the servers without a word, or killed.
//!
//! Each run is an election of its own with a leader and a follower, real `bellwether run` processes with a witness as their
//! command, on machines of their own: two network namespaces, and one more for each server. Several runs go side by side, so that
//! many are done in the time of a few ttls. When a leader was replaced it is let go on, and says itself until when it
//! had believed: that, against the instant at which its successor began to lead, is the verdict. Who was killed believes
//! until then.

mod figures;
mod run;
mod store;

use std::fmt;
use std::time::Duration;

use bellwether_deadman::boot_now;
use bellwether_support::netns::{Network, Node};
use rustix::process::Signal;

pub use figures::Silenced;
use run::Run;
pub(crate) use run::candidate;
use store::Store;
pub use store::{Kind, Profile};

use crate::{bellwether, run_to_end};

/// The ttl of every run.
pub const TTL: Duration = Duration::from_secs(2);
/// How much longer than the ttl a successor of a silent leader may take.
pub const SLACK: Duration = Duration::from_millis(300);
/// How much longer than the ttl a successor of a killed one may take, where nothing else is said.
pub const SLACK_AFTER_DEATH: Duration = Duration::from_millis(100);

/// From one renewal to the next at this ttl, at the longest.
const RENEW: Duration = Duration::from_millis(667);
/// At so many different distances from the beginning of a run leaders fall silent.
const PHASES: usize = 7;

/// How a leader falls silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// SIGSTOP.
    Stopped,
    /// Its packets vanish, to all servers.
    CutOff,
    /// It is on an island with one of three servers: its connection lives and is answered, but no write of its reaches a
    /// majority. The server is not the one that leads the bucket's stream: without that one nobody writes for some seconds,
    /// longer than this ttl.
    CutOffWithServer,
    /// SIGKILL.
    Killed,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Silence::Stopped => "stopped",
            Silence::CutOff => "cut off",
            Silence::CutOffWithServer => "cut off with a server",
            Silence::Killed => "killed",
        })
    }
}

/// The leaders' machine, everybody else's, and the servers'.
pub struct Silences {
    kind: Kind,
    leaders: Node,
    others: Node,
    store: Store,
    runs: usize,
    network: Network,
}

impl Silences {
    /// With servers that have just been started; `None`, said aloud, where this is not root.
    pub fn new(kind: Kind) -> Option<Silences> {
        let mut network = Network::new()?;
        let (leaders, others) = (network.node(), network.node());
        let store = Store::start(kind, &mut network);
        // Somebody leads once, so that whatever is made by the first is there.
        let mut first = others.command(bellwether());
        first.args(["--backend", &store.url(), "--id", "first", "acquire", "first"]);
        first.args(["--ttl", &format!("{}ms", TTL.as_millis())]);
        let ended = run_to_end(first);
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        Some(Silences { kind, leaders, others, store, runs: 0, network })
    }

    /// So many runs, so many of them at once.
    pub fn series(&mut self, how: Silence, runs: usize, at_once: usize) -> Silenced {
        let mut all = Silenced::new(self.kind, how);
        while all.took.len() < runs {
            self.side_by_side(how, at_once.min(runs - all.took.len()), &mut all);
        }
        all
    }

    fn side_by_side(&mut self, how: Silence, count: usize, all: &mut Silenced) {
        let island = (how == Silence::CutOffWithServer).then(|| self.store.spare());
        let mut runs = self.led_and_followed(count, island);
        // Not always as soon as the followers are there: the silence is to fall at various distances from a renewal.
        let phase = u32::try_from(self.runs % PHASES).unwrap_or_default();
        std::thread::sleep(self.kind.settles() + RENEW * phase / PHASES as u32);
        let before = boot_now();
        runs.iter_mut().for_each(|run| run.silent = before);
        match (how, island) {
            (Silence::Stopped, _) => {
                runs.iter_mut().for_each(|run| run.silent = run.leader.signal(Signal::STOP));
            }
            (Silence::Killed, _) => runs.iter_mut().for_each(|run| run.silent = run.leader.kill()),
            (_, Some(server)) => {
                self.network.part(&[self.store.machine(server), &self.leaders]);
            }
            (_, None) => _ = self.network.cut(&self.leaders),
        }
        runs.iter_mut().for_each(Run::replaced);
        match (how, island) {
            (Silence::Stopped, _) => runs.iter_mut().for_each(|run| _ = run.leader.signal(Signal::CONT)),
            (Silence::Killed, _) => {}
            (_, server) => {
                self.network.heal(&self.leaders);
                server.into_iter().for_each(|server| self.network.heal(self.store.machine(server)));
            }
        }
        runs.iter_mut().for_each(|run| run.judge(all));
        runs.iter_mut().for_each(|run| run.end(all));
    }

    /// Leaders at work, and followers that know them; the leaders by that server only, the followers by another, if one is named.
    fn led_and_followed(&mut self, count: usize, server: Option<usize>) -> Vec<Run> {
        let all = self.store.url();
        let url =
            |server: Option<usize>| server.map_or_else(|| all.clone(), |server| self.store.url_of(server));
        let (theirs, others) = (url(server), url(server.map(|server| (server + 1) % self.kind.nodes())));
        let first = self.runs + 1;
        self.runs += count;
        let start = |number| Run::start(format!("job-{number}"), &self.leaders, &theirs);
        let mut runs: Vec<Run> = (first..=self.runs).map(start).collect();
        runs.iter_mut().for_each(Run::leads);
        runs.iter_mut().for_each(|run| run.follow(&self.others, &others));
        runs.iter_mut().for_each(|run| run.follower().joined());
        runs
    }
}
