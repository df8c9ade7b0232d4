//! Ours beside other makes, on the same server and in the same run. Every candidate is a process that speaks one line protocol
//! (`benches/peers/candidate`), ours too ([`ours`]), so the same code measures all of them.
//!
//! A [`Pair`] is another make with settings of its own, and ours with settings that can be compared with these: both at their defaults, or
//! both with equal times. A measure is taken of one make after the other.

pub mod contest;
mod many;
pub mod ours;
mod process;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{Row, Unit};
pub use contest::Contest;
pub use process::{Line, Process};

/// From this ttl on, a few failovers have to do.
const LONG: Duration = Duration::from_secs(10);
const ROUNDS_OF_LONG: usize = 3;

/// Another make and ours, as they are compared.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The other make.
    pub theirs: Make,
    /// Ours, with settings that can be compared with those.
    pub ours: Make,
    /// Whether both are at their defaults: only then is it measured how cost grows.
    pub defaults: bool,
    /// Which guarantees are not equal, and what else a reader of the figures has to know.
    pub note: &'static str,
}

/// How the candidates of one make are started.
#[derive(Clone, Debug)]
pub struct Make {
    /// With its version, and how it is set; of ours only that.
    pub name: String,
    program: PathBuf,
    words: Vec<String>,
    settings: Vec<String>,
    /// How long a leader that is silent is believed in.
    pub ttl: Duration,
    /// How often a follower asks that is told nothing: handovers begin at different points of this.
    pub asks_every: Duration,
    /// How often to measure what takes about as long as a ttl.
    pub rounds: usize,
    /// The most elections that one process of it can hold.
    pub elections_max: usize,
    /// Whether it has a call that tells whether the caller leads, and asks nobody.
    pub tells: bool,
}

impl Pair {
    /// A row of both, of what was measured of each.
    fn row(&self, store: &str, what: &str, unit: Unit, measured: impl Fn(&Make) -> f64) -> Row {
        Row::figure(store, what, unit, measured(&self.ours))
            .set(&self.ours.name)
            .peer(&self.theirs.name, measured(&self.theirs))
            .note(self.note)
    }
}

impl Make {
    /// Ours on this store, in a process of this same program.
    pub fn ours(url: &str, ttl: Duration) -> Make {
        let program = std::env::current_exe().expect("a program has a path");
        let settings = vec![format!("--url={url}"), format!("--ttl={}ms", ttl.as_millis())];
        Make {
            name: format!("ttl {}, renewed every {}", written(ttl), written(ttl / 3)),
            program,
            words: vec![ours::CANDIDATE.to_owned()],
            settings,
            ttl,
            asks_every: ttl / 3,
            rounds: 7,
            elections_max: 10_000,
            tells: true,
        }
    }

    /// Of a program of `benches/peers`, at its defaults; `set` says which these are.
    pub fn peer(program: &Path, url: &str, set: &str, ttl: Duration) -> Make {
        Make {
            name: format!("{}, {set}", version(program)),
            program: program.to_owned(),
            words: Vec::new(),
            settings: vec![format!("--url={url}")],
            ttl,
            asks_every: ttl,
            rounds: 3,
            elections_max: 10_000,
            tells: true,
        }
    }

    /// The same with these times in place of the defaults.
    pub fn timed(self, renew: Duration) -> Make {
        let (ttl, renew) = (self.ttl.as_millis(), renew.as_millis());
        let times = [format!("--ttl={ttl}ms"), format!("--renew={renew}ms")];
        Make { settings: [self.settings, times.into()].concat(), rounds: 5, ..self }
    }

    /// Its followers are told of a release.
    pub fn told(self) -> Make {
        Make { asks_every: Duration::from_secs(1), ..self }
    }

    /// Its followers ask so often, and are told nothing.
    pub fn asking(self, asks_every: Duration) -> Make {
        Make { asks_every, ..self }
    }

    /// So often, what takes about as long as a ttl.
    pub fn measured(self, rounds: usize) -> Make {
        Make { rounds, ..self }
    }

    /// It holds no more elections than this in one process.
    pub fn at_most(self, elections_max: usize) -> Make {
        Make { elections_max, ..self }
    }

    /// It has no call that tells whether the caller leads.
    pub fn silent(self) -> Make {
        Make { tells: false, ..self }
    }

    /// How often a leader of it is killed, each of which may take a whole ttl.
    fn failovers(&self) -> usize {
        if self.ttl < LONG { self.rounds } else { self.rounds.min(ROUNDS_OF_LONG) }
    }

    fn is_ours(&self) -> bool {
        !self.words.is_empty()
    }

    /// Makes what the store needs for this election.
    fn prepare(&self, election: &str, rounds: usize) {
        if self.is_ours() {
            return;
        }
        let flags = [format!("--election={election}"), format!("--rounds={rounds}")];
        let output = self.command("prepare", &flags).output().expect("it starts");
        let logged = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} cannot prepare {election}: {logged}", self.name);
    }

    fn command(&self, verb: &str, flags: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.words).arg(verb).args(&self.settings).args(flags);
        command
    }
}

/// `15 s` in place of `15s`, as in the other makes' own words.
fn written(span: Duration) -> String {
    format!("{} s", span.as_secs_f64())
}

/// Which library a program of another make is made of, in its own words.
pub fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    let output = output.unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
