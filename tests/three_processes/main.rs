//! Three processes, one directory: leaders are killed, asked to leave and replaced, and there are never two.

use std::path::Path;
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_tests::{Candidate, overlaps};
use rustix::process::Signal;

/// Long enough that nothing here can be explained by a lease running out.
const TTL: &str = "10s";

struct Trio {
    directory: tempfile::TempDir,
    running: Vec<Candidate>,
    gone: Vec<Candidate>,
    started: usize,
}

impl Trio {
    fn new() -> Trio {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut trio = Trio { directory, running: Vec::new(), gone: Vec::new(), started: 0 };
        for _ in 0..3 {
            trio.join();
        }
        trio
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn join(&mut self) {
        let id = format!("c{}", self.started);
        self.started += 1;
        let mut candidate = Candidate::on_file(self.path(), "job", &id, &["--ttl", TTL]);
        candidate.joined();
        self.running.push(candidate);
    }

    fn leader(&mut self) -> usize {
        let leading: Vec<usize> = (0..self.running.len()).filter(|at| self.running[*at].leads()).collect();
        assert_eq!(leading.len(), 1, "exactly one leads");
        leading[0]
    }

    /// The next `acquired` of anybody.
    fn next_leader(&mut self) -> (usize, Boot, u64) {
        let deadline = bellwether_deadman::boot_now() + bellwether_tests::PATIENCE;
        while bellwether_deadman::boot_now() < deadline {
            for (at, candidate) in self.running.iter_mut().enumerate() {
                if let Some(line) = candidate.wait("acquired", Duration::from_millis(2)) {
                    return (at, line.boot(), line.epoch().expect("an epoch"));
                }
            }
        }
        panic!("nobody leads");
    }

    fn judge(mut self) {
        for candidate in &mut self.running {
            candidate.drain();
        }
        let found = overlaps(self.running.iter().chain(&self.gone));
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn a_killed_leader_is_replaced_long_before_its_lease_runs_out() {
    let mut trio = Trio::new();
    let mut highest = 0;
    for _ in 0..5 {
        let leader = trio.leader();
        let mut victim = trio.running.remove(leader);
        let killed = victim.kill();
        trio.gone.push(victim);
        let (_, acquired, epoch) = trio.next_leader();
        assert!(epoch > highest, "epoch {epoch} after {highest}");
        highest = epoch;
        let took = acquired.since(killed);
        println!("killed to led: {took:?}");
        assert!(took < Duration::from_secs(5), "{took:?}: by its lease, not by its death");
        trio.join();
    }
    trio.judge();
}

#[test]
fn a_leader_that_leaves_hands_over_at_once() {
    let mut trio = Trio::new();
    for _ in 0..5 {
        let leader = trio.leader();
        let mut leaving = trio.running.remove(leader);
        let asked = leaving.signal(Signal::TERM);
        let (_, acquired, _) = trio.next_leader();
        let ended = leaving.ended();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let took = acquired.since(asked);
        println!("asked to led: {took:?}");
        assert!(took < Duration::from_secs(5), "{took:?}: by its lease, not by its release");
        trio.gone.push(leaving);
        trio.join();
    }
    trio.judge();
}

#[test]
fn idle_followers_sleep() {
    let mut trio = Trio::new();
    let leader = trio.leader();
    let followers: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    let before: Vec<u64> = followers.iter().map(|at| trio.running[*at].sleeps()).collect();
    let watched = Duration::from_secs(6);
    std::thread::sleep(watched);
    for (follower, before) in followers.iter().zip(before) {
        let woke = trio.running[*follower].sleeps() - before;
        println!("a follower woke {woke} times in {watched:?}");
        assert!(woke < 10 * watched.as_secs(), "{woke} times in {watched:?}");
    }
    trio.judge();
}

/// The request of the higher priority comes within milliseconds, while its successor still waits for the last of the killed leader's work.
#[test]
fn after_a_kill_the_higher_priority_leads_though_it_asked_before_the_lower_led() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for round in 0..4 {
        let job = format!("job{round}");
        let start = |id, more: &[&str]| {
            let args: Vec<&str> = ["--ttl", TTL].into_iter().chain(more.iter().copied()).collect();
            let mut candidate = Candidate::on_file(directory.path(), &job, id, &args);
            candidate.joined();
            candidate
        };
        let mut killed = start("a", &["--priority", "9"]);
        let _lower = start("b", &[]);
        let mut higher = start("c", &["--priority", "5", "--preempt"]);
        let at = killed.kill();
        let line =
            higher.wait("acquired", bellwether_tests::PATIENCE).expect("the higher priority gets its way");
        let took = line.boot().since(at);
        println!("killed to led by the higher priority: {took:?}");
        assert!(took < Duration::from_secs(5), "{took:?}: it had to ask again, or to wait for the lease");
    }
}
