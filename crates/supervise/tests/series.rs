//! Kills in a row, each followed at once by a successor that acts on the freed proof; and what it all takes.
//!
//! `SUPERVISE_ROUNDS=2000 cargo test --release -p bellwether-supervise --features probe --test series -- --nocapture` is
//! the long series, with its figures.

#![cfg(target_os = "linux")]

mod stage;

use bellwether_deadman::boot_now;
use rustix::process::Signal;
use stage::{NOBODY, Stage, is_root, kill, wait_for_lock};

const ROUNDS: usize = 20;

fn rounds() -> usize {
    std::env::var("SUPERVISE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS)
}

#[test]
fn a_successor_that_acts_on_the_proof_never_meets_the_work_of_the_last() {
    series("namespace", &[]);
    if is_root() {
        series("sweep", &[&format!("user={NOBODY}")]);
    }
}

fn series(name: &str, user: &[&str]) {
    let stage = Stage::new();
    let proof = format!("proof={}", stage.proof());
    let options = [user, &[&proof]].concat();
    let mut figures = Figures::default();
    for round in 0..rounds() {
        let manners: &[&str] = if round % 2 == 0 { &["deaf", "grandchild"] } else { &["deaf", "daemon"] };
        // The one before may be dying still: its proof is free, and so must its work be.
        let mut host = stage.host(&options, manners);
        let took = host.expect("took");
        let (first, spawn) = took.split_once(' ').unwrap();
        let cast = host.running();
        let killed = boot_now();
        kill(cast.host, Signal::KILL);
        let free = wait_for_lock(&stage.proof());
        assert!(!stage.witnessed(), "round {round}: the proof was free while the work still ran");
        figures.note(first.parse().unwrap(), spawn.parse().unwrap(), free.since(killed).as_micros() as u64);
        stage.expect_never_two();
    }
    stage.expect_empty();
    figures.print(name);
}

/// Microseconds.
#[derive(Default)]
struct Figures {
    first: Vec<u64>,
    spawn: Vec<u64>,
    gone: Vec<u64>,
}

impl Figures {
    fn note(&mut self, first: u64, spawn: u64, gone: u64) {
        self.first.push(first);
        self.spawn.push(spawn);
        self.gone.push(gone);
    }

    fn print(&mut self, name: &str) {
        let rounds = self.gone.len();
        for (what, values) in [
            ("guard and command up", &mut self.first),
            ("command ordered to running", &mut self.spawn),
            ("kill -9 of the supervisor to tree gone and proof free", &mut self.gone),
        ] {
            values.sort_unstable();
            let (median, worst) = (values[rounds / 2], values[rounds - 1]);
            println!("{name}, {rounds} rounds, {what}: median {median} µs, worst {worst} µs");
        }
    }
}
