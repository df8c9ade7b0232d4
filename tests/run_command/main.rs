//! `bellwether run ELECTION -- COMMAND` on the built command, as `CLI.md` has it: exit codes, signals, terminal, environment,
//! event lines, health checks and hooks.
//!
//! Commands are scripts that say what happens to them as event lines of their own, on the stdout that they share with
//! `--events`.

#![cfg(target_os = "linux")]

mod beside;
mod codes;
mod container;
mod jobs;
mod namespaces;
mod reaping;
mod shortage;
mod signals;
mod stopping;
mod surroundings;
mod terminal;
mod trouble;
mod unkillable;

use std::process::Command;

use bellwether_tests::{Candidate, EventLine, Stage, Surroundings};

/// What every script begins with: `say WORD…` prints an event line.
const SAY: &str = r#"say() { echo "{\"event\":\"said\",\"boot_ns\":0,\"words\":\"$*\"}"; }; "#;

/// What a script ends with that waits for signals: a trap runs as soon as `wait` is interrupted.
const WAIT: &str = "; say ready; while :; do sleep 1000 & wait $!; done";

fn plain() -> Stage {
    Stage::new(Surroundings::Plain).expect("plain surroundings")
}

/// `bellwether run job --events OPTIONS -- /bin/sh -c SCRIPT`.
fn command(stage: &Stage, id: &str, options: &[&str], script: &str) -> Command {
    let mut command = stage.bellwether(id);
    command.args(["run", "job", "--events"]).args(options);
    command.args(["--", "/bin/sh", "-c", &format!("{SAY}{script}")]);
    command
}

fn run(stage: &Stage, options: &[&str], script: &str) -> Candidate {
    Candidate::start(command(stage, "a", options, script))
}

/// The next words of the script.
fn words(candidate: &mut Candidate) -> String {
    candidate.expect("said").text("words").expect("words").to_owned()
}

/// Waits until the script is ready under a later leadership than this, and returns the line of that leadership. The
/// script may be heard before its leader is.
fn ready_after(candidate: &mut Candidate, epoch: Option<u64>) -> EventLine {
    assert_eq!(words(candidate), "ready");
    let later = |line: &&EventLine| line.event() == "acquired" && line.epoch() > epoch;
    let found = candidate.said.iter().find(later).cloned();
    found.unwrap_or_else(|| candidate.expect("acquired"))
}

/// Whether it has said this event so far.
fn has_said(candidate: &Candidate, event: &str) -> bool {
    candidate.said.iter().any(|line| line.event() == event)
}
