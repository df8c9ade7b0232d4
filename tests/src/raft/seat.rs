//! One node: its name, its place, and its process while it has one.

use std::path::{Path, PathBuf};
use std::process::Command;

use bellwether_support::netns;
use rustix::process::Signal;

use crate::{Candidate, Ended, EventLine, bellwether};

/// A node's place in the cluster, whether or not a process runs there.
pub struct Seat {
    /// Its name.
    pub name: String,
    /// Where it listens, and clients reach it.
    pub address: String,
    /// Where the other nodes reach it.
    pub advertised: String,
    /// Its data directory.
    pub directory: PathBuf,
    /// The machine that it runs on, where the cluster has a network of its own.
    pub host: Option<netns::Node>,
    /// What is run in front of the command.
    pub wrapper: Vec<String>,
    pub(super) process: Option<Candidate>,
}

impl Seat {
    pub(super) fn new(name: String, address: String, directory: PathBuf) -> Seat {
        let advertised = address.clone();
        Seat { name, address, advertised, directory, host: None, wrapper: Vec::new(), process: None }
    }

    /// The command, where this node runs.
    pub fn command(&self) -> Command {
        let mut words = self.wrapper.iter().map(Path::new).chain([bellwether().as_path()]);
        let program = words.next().expect("at least the command itself");
        let mut command = match &self.host {
            Some(host) => host.command(program),
            None => Command::new(program),
        };
        command.args(words);
        command
    }

    /// Does this where this node runs.
    pub fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        match &self.host {
            Some(host) => host.inside(act),
            None => act(),
        }
    }

    /// Its process.
    #[track_caller]
    pub fn process(&mut self) -> &mut Candidate {
        self.process.as_mut().unwrap_or_else(|| panic!("{} does not run", self.name))
    }

    /// Whether a process runs there, as far as it was started and not ended here.
    pub fn runs(&self) -> bool {
        self.process.is_some()
    }

    /// The line that says that it is ready: one that has come already, or else the next.
    #[track_caller]
    pub fn ready(&mut self) -> EventLine {
        self.process().heard("ready")
    }

    /// With kill −9; it is gone when this returns.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Asks it to stop, and returns how it ended.
    #[track_caller]
    pub fn terminate(&mut self) -> Ended {
        self.process().signal(Signal::TERM);
        self.ended()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn ended(&mut self) -> Ended {
        let ended = self.process().ended();
        self.process = None;
        ended
    }

    /// Its disk is lost.
    pub fn wipe(&mut self) {
        assert!(!self.runs(), "{} uses its directory", self.name);
        std::fs::remove_dir_all(&self.directory).expect("its directory is ours");
    }
}
