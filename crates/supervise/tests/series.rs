//! Kills in a row, each followed at once by a successor that acts on the freed proof; and what it all takes.
//!
//! `SUPERVISE_ROUNDS=2000 cargo test --release -p bellwether-supervise --features probe --test series -- --nocapture` is
//! the long series, with its figures.

#![cfg(target_os = "linux")]

mod stage;

use bellwether_deadman::boot_now;
use rustix::process::Signal;
use stage::{
    Host, NOBODY, Processes, Stage, kill, may_become_nobody, may_make_namespaces, wait_for_end_of,
    wait_for_lock,
};
use std::time::Duration;

const ROUNDS: usize = 20;

fn rounds() -> usize {
    std::env::var("SUPERVISE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS)
}

#[test]
fn a_successor_that_acts_on_the_proof_never_meets_the_work_of_the_last() {
    series("namespace", &[]);
    if may_become_nobody() {
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

/// Every way in which it can go wrong, in turn, on one witness's lock: each successor begins as early as it may.
#[test]
fn whatever_happens_there_are_never_two_and_never_an_orphan() {
    let times = (rounds() / ROUNDS).max(1);
    every_way(&[], times);
    if may_become_nobody() {
        every_way(&[&format!("user={NOBODY}")], times);
    }
}

fn every_way(user: &[&str], times: usize) {
    let stage = Stage::new();
    let proof = format!("proof={}", stage.proof());
    let options = [user, &[&proof, "ttl=1000", "grace=100"]].concat();
    let namespaces = user.is_empty() && may_make_namespaces();
    for (way, act) in WAYS.iter().cycle().take(WAYS.len() * times) {
        // Without a namespace, a daemon is not tied to those that the kernel kills when all are stopped.
        let manners: &[&str] = match *way {
            "all stopped" if !namespaces => &["deaf"],
            "told to stop" => &["daemon"],
            _ => &["deaf", "daemon"],
        };
        let mut host = stage.host(&options, manners);
        let cast = host.running();
        act(&mut host, &cast);
        wait_for_lock(&stage.proof());
        std::thread::sleep(SETTLE);
        assert!(!stage.witnessed(), "{way}: the work goes on: {cast:?}");
        stage.expect_empty();
        stage.expect_never_two();
    }
}

/// What a successor waits after a crash, for the case that supervisor and guard were killed at once.
const SETTLE: Duration = Duration::from_millis(20);

type Act = fn(&mut Host, &Processes);

const WAYS: &[(&str, Act)] = &[
    ("supervisor killed", |_, cast| kill(cast.host, Signal::KILL)),
    ("guard killed", |host, cast| {
        kill(cast.guard, Signal::KILL);
        host.expect("released");
    }),
    ("both killed", |_, cast| {
        kill(cast.host, Signal::KILL);
        kill(cast.guard, Signal::KILL);
    }),
    ("supervisor stopped", |host, cast| {
        kill(cast.host, Signal::STOP);
        wait_for_end_of(cast.command);
        kill(cast.host, Signal::CONT);
        host.expect("released");
    }),
    ("guard stopped", |host, cast| {
        kill(cast.guard, Signal::STOP);
        host.expect("released");
    }),
    ("all stopped", |host, cast| {
        for pid in [cast.host, cast.guard, cast.init, cast.command] {
            kill(pid, Signal::STOP);
        }
        wait_for_end_of(cast.command);
        kill(cast.host, Signal::CONT);
        host.expect("released");
    }),
    ("told to stop", |host, _| {
        host.tell("term");
        host.expect("released");
    }),
    ("deaf, and told to stop", |host, _| {
        host.tell("term");
        host.expect("released");
    }),
    ("let go", |host, _| {
        host.tell("step down");
        host.expect("released");
    }),
];

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
