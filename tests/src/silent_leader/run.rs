//! One run: an election with a leader and a follower, real processes with a witness as their command.

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use bellwether_support::netns::Node;
use rustix::process::Signal;

use super::{Silenced, TTL};
use crate::{Candidate, bellwether, binary, overlaps};

pub(super) struct Run {
    election: String,
    pub(super) leader: Candidate,
    /// There from [`Run::follow`] on.
    follower: Option<Candidate>,
    directory: tempfile::TempDir,
    pub(super) silent: Boot,
    replaced: Boot,
}

impl Run {
    /// A candidate on that machine, which is alone and will lead.
    pub(super) fn start(election: String, node: &Node, url: &str) -> Run {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let leader = candidate(node, url, "leader", &election, &directory);
        Run { election, leader, follower: None, directory, silent: boot_now(), replaced: boot_now() }
    }

    /// Waits until it leads and works.
    pub(super) fn leads(&mut self) {
        self.leader.expect("acquired");
        self.leader.heard("witness");
    }

    /// Adds a follower on that machine.
    pub(super) fn follow(&mut self, node: &Node, url: &str) {
        self.follower = Some(candidate(node, url, "follower", &self.election, &self.directory));
    }

    pub(super) fn follower(&mut self) -> &mut Candidate {
        self.follower.as_mut().expect("a run has a follower before anything is done to its leader")
    }

    /// Waits until the follower leads and works.
    pub(super) fn replaced(&mut self) {
        self.replaced = self.follower().expect("acquired").boot();
        self.follower().heard("witness");
    }

    /// By the leaders' own words, on the one clock that they share.
    pub(super) fn judge(&mut self, all: &mut Silenced) {
        let belief = self.leader.killed.unwrap_or_else(|| {
            let lost = self.leader.heard("lost");
            lost.instant("deadline_boot_ns").expect("a deadline")
        });
        self.follower().drain();
        let follower = self.follower.as_ref().expect("drained just now");
        let found = overlaps([&self.leader, follower]);
        let mut said: Vec<String> = found.iter().map(|overlap| format!("{overlap:?}")).collect();
        if let Ok(two) = std::fs::read_to_string(self.directory.path().join("two")) {
            said.push(format!("two witnesses at once: {two}"));
        }
        if self.replaced < belief {
            let early = belief.since(self.replaced);
            said.push(format!("replaced {early:?} before its own belief was over"));
        }
        all.overlaps += usize::from(!said.is_empty());
        all.complaints.extend(said);
        let took = self.replaced.since(self.silent);
        if took > all.kind.bound(all.how) {
            let meanwhile: Vec<_> = follower.said.iter().filter(|line| line.boot() >= self.silent).collect();
            all.late.push(format!("replaced after {took:?}; meanwhile the follower said {meanwhile:#?}"));
        }
        all.took.push(took);
        all.spare.push(self.replaced.since(belief));
        self.living().for_each(|candidate| _ = candidate.signal(Signal::TERM));
    }

    /// Sees those off whom [`Run::judge`] sent away.
    pub(super) fn end(&mut self, all: &mut Silenced) {
        for candidate in self.living() {
            let ended = candidate.ended();
            if ended.code != Some(0) {
                all.complaints.push(format!("ended with {:?}: {}", ended.code, ended.stderr));
            }
        }
    }

    fn living(&mut self) -> impl Iterator<Item = &mut Candidate> {
        let both = [&mut self.leader].into_iter().chain(&mut self.follower);
        both.filter(|candidate| candidate.killed.is_none())
    }
}

/// `bellwether run` on that machine, with a witness in that directory as its command.
pub(crate) fn candidate(
    node: &Node,
    url: &str,
    id: &str,
    election: &str,
    directory: &tempfile::TempDir,
) -> Candidate {
    let mut command = node.command(bellwether());
    command.args(["--backend", url, "--id", id, "run", election, "--events"]);
    command.args(["--ttl", &format!("{}ms", TTL.as_millis()), "--"]);
    command.arg(binary::beside("bellwether-witness")).arg(directory.path());
    Candidate::start(command)
}
