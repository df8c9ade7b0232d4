//! Three processes on one directory: how long until the next one leads.

use std::time::Duration;

use bellwether_benches::{median, percentile, report};
use bellwether_tests::{Candidate, PATIENCE, overlaps};

const ROUNDS: usize = 20;

struct Trio {
    directory: tempfile::TempDir,
    running: Vec<Candidate>,
    gone: Vec<Candidate>,
}

impl Trio {
    fn join(&mut self) {
        let id = format!("c{}", self.running.len() + self.gone.len());
        let mut candidate = Candidate::on_file(self.directory.path(), "job", &id, &["--ttl", "15s"]);
        candidate.joined();
        self.running.push(candidate);
    }

    /// Ends the leader in this way; returns how long it took until the next one led.
    fn replace(&mut self, end: impl FnOnce(&mut Candidate) -> bellwether::Boot) -> Duration {
        let leader = self.running.iter_mut().position(|candidate| candidate.leads()).expect("a leader");
        let mut old = self.running.remove(leader);
        let ended = end(&mut old);
        let deadline = bellwether::boot_now() + PATIENCE;
        let acquired = loop {
            assert!(bellwether::boot_now() < deadline, "nobody leads");
            let mut running = self.running.iter_mut();
            if let Some(line) = running.find_map(|one| one.wait("acquired", Duration::from_millis(1))) {
                break line.boot();
            }
        };
        if old.killed.is_none() {
            old.ended();
        }
        self.gone.push(old);
        self.join();
        acquired.since(ended)
    }
}

fn main() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut trio = Trio { directory, running: Vec::new(), gone: Vec::new() };
    (0..3).for_each(|_| trio.join());
    let killed: Vec<Duration> = (0..ROUNDS).map(|_| trio.replace(Candidate::kill)).collect();
    let released: Vec<Duration> =
        (0..ROUNDS).map(|_| trio.replace(|old| old.signal(rustix::process::Signal::TERM))).collect();
    trio.running.iter_mut().for_each(Candidate::drain);
    let found = overlaps(trio.running.iter().chain(&trio.gone));
    for (what, all, limit) in [("kill -9", killed, 100), ("TERM", released, 20)] {
        let (middle, most) = (median(all.clone()), percentile(all, 0.99));
        report(
            &format!("{what} to next leader, median of {ROUNDS}"),
            &format!("{middle:.1?}"),
            &format!("at most {limit} ms"),
        );
        report(&format!("{what} to next leader, p99"), &format!("{most:.1?}"), "");
        assert!(middle <= Duration::from_millis(limit), "{what}: {middle:?}");
    }
    report("two leaders at once", &found.len().to_string(), "0");
    assert!(found.is_empty(), "{found:?}");
}
