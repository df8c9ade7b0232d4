//! A place for candidates and their witnesses, and eyes for what they leave behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use bellwether_deadman::{boot_now, random_bits};
use rustix::process::Signal;

use crate::{Candidate, Mount, PATIENCE, Process, bellwether, binary, permitted};

/// Nobody's number, by custom.
const NOBODY: u32 = 65_534;

/// In what surroundings candidates run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surroundings {
    /// As whoever runs the tests.
    Plain,
    /// As process 1 of a PID namespace, like in a container.
    Container,
    /// As an ordinary user, who may not make namespaces.
    Nobody,
}

/// A directory with a store and a witness's lock, and a mark that every process started on it carries.
pub struct Stage {
    directory: tempfile::TempDir,
    mark: String,
    surroundings: Surroundings,
}

impl Stage {
    /// An empty one; `None` where these surroundings are not to be had.
    pub fn new(surroundings: Surroundings) -> Option<Stage> {
        if surroundings != Surroundings::Plain && !may_change_to(surroundings) {
            return None;
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mark = format!("BELLWETHER_TEST_MARK={:032x}", random_bits());
        let stage = Stage { directory, mark, surroundings };
        fs::set_permissions(stage.path(), fs::Permissions::from_mode(0o777)).expect("our own directory");
        fs::create_dir(stage.store()).expect("our own directory");
        fs::set_permissions(stage.store(), fs::Permissions::from_mode(0o777)).expect("our own directory");
        Some(stage)
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where elections are held.
    pub fn store(&self) -> PathBuf {
        self.path().join("store")
    }

    /// `bellwether` with the store and this id, in the surroundings, marked.
    pub fn bellwether(&self, id: &str) -> Command {
        let mut command = match self.surroundings {
            Surroundings::Plain => Command::new(bellwether()),
            Surroundings::Container => {
                let mut command = Command::new("unshare");
                command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]).arg(bellwether());
                command
            }
            Surroundings::Nobody => {
                let mut command = Command::new("setpriv");
                let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
                command.args([&user, &group, "--clear-groups"]).arg(bellwether());
                command
            }
        };
        let (name, value) = self.mark.split_once('=').expect("a variable");
        command.env(name, value).arg("--backend").arg(format!("file:{}", self.store().display()));
        command.args(["--id", id]);
        command
    }

    /// A candidate whose command is a witness.
    pub fn candidate(&self, id: &str, options: &[&str]) -> Candidate {
        let mut command = self.bellwether(id);
        command.args(["run", "job", "--events"]).args(options).arg("--");
        command.arg(binary::beside("bellwether-witness")).arg(self.path());
        Candidate::start(command)
    }

    /// How witnesses that start from now on behave.
    pub fn manners(&self, words: &str) {
        // In one step: a witness may be starting.
        let new = self.path().join("manners.new");
        fs::write(&new, words).expect("our own directory");
        fs::rename(new, self.path().join("manners")).expect("our own directory");
    }

    /// What witnesses said that met another since the last time; empty if none did.
    pub fn take_two_at_once(&self) -> String {
        let two = self.path().join("two");
        let said = fs::read_to_string(&two).unwrap_or_default();
        let _ = fs::remove_file(two);
        said
    }

    /// Every living process of this stage.
    pub fn alive(&self) -> Vec<Process> {
        Process::all_with(&self.mark)
    }

    /// The processes of commands that were started under another leadership than this.
    pub fn orphans(&self, epoch: Option<u64>) -> Vec<Process> {
        let not_of_it = |process: &Process| process.epoch.is_some() && process.epoch != epoch;
        self.alive().into_iter().filter(not_of_it).collect()
    }

    /// Waits until nobody is left; returns who is, if that does not come to pass.
    pub fn emptied(&self) -> Vec<Process> {
        let limit = boot_now() + PATIENCE;
        loop {
            let alive = self.alive();
            if alive.is_empty() || boot_now() > limit {
                return alive;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Makes the store read-only for as long as the answer lives.
    pub fn read_only(&self) -> Mount {
        Mount::read_only(self.store())
    }

    /// Makes the store a file system of its own with room for little, for as long as the answer lives.
    pub fn small_store(&self) -> Mount {
        Mount::small(self.store())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for process in self.alive() {
            process.signal(Signal::KILL);
        }
    }
}

/// Whether whoever runs this may make PID namespaces and become another user.
fn may_change_to(surroundings: Surroundings) -> bool {
    let mut tried = Command::new("unshare");
    tried.args([
        "--pid",
        "--mount",
        "--fork",
        "setpriv",
        &format!("--reuid={NOBODY}"),
        "--clear-groups",
        "true",
    ]);
    permitted(&mut tried, format_args!("a candidate in the surroundings {surroundings:?}"))
}
