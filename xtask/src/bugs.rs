//! `cargo xtask sim --bugs`: known mistakes, put in one at a time; the simulator must catch every one.
//!
//! A checker that has never caught anything proves nothing. Each bug is a mistake that some election in use has made, written
//! down in a table as text to replace: `good` is what the project's code says, `bad` is the mistake. The product knows nothing
//! of them. They are planted in a copy of the project under `target/` ([`plant`]), which is built once with all of them in it;
//! an environment variable says which of them is awake.
//!
//! Bugs of the lease are shown to the conformance suite too: each has a case that must notice it.

mod anywhere;
mod plant;
mod raft;
mod register;
mod session;
mod shared;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::metadata::Workspace;
use crate::process::{self, Stopwatch, say};
use crate::suggest::did_you_mean;
use crate::terminal::span;
use crate::tree::Tree;
use crate::{Problem, Verdict, sim};

/// A mistake.
#[derive(Debug)]
struct Bug {
    name: &'static str,
    /// What it breaks, in one sentence.
    breaks: &'static str,
    changes: &'static [Change],
    /// The invariants of the simulator that notice it: any of them.
    caught_by: &'static [&'static str],
    /// The case of the conformance suite that notices it too.
    case: Option<&'static str>,
}

/// A piece of code and what the mistake makes of it.
#[derive(Debug)]
struct Change {
    file: &'static str,
    /// An expression or statements, found exactly once in the file; blanks and line breaks do not count. Where more is needed to find it,
    /// `«…»` is around the part that is replaced.
    good: &'static str,
    bad: &'static str,
}

const SHARED: &str = "xtask/src/bugs/shared.rs";

/// Bugs by the kind of store that they need to show, with the file of the table.
const TABLES: [(Option<&str>, &str, &[Bug]); 7] = [
    (None, "xtask/src/bugs/anywhere.rs", anywhere::BUGS),
    (Some("register"), "xtask/src/bugs/register.rs", register::BUGS),
    (Some("session"), "xtask/src/bugs/session.rs", session::BUGS),
    (Some("raft"), "xtask/src/bugs/raft.rs", raft::BUGS),
    (Some("register"), SHARED, shared::OF_REGISTERS),
    (Some("session"), SHARED, shared::OF_SESSIONS),
    (Some("raft"), SHARED, shared::OF_CLUSTERS),
];

/// How many worlds a bug may survive before it counts as not caught.
const SEEDS_MAX: &str = "4000";

/// How many worlds it may break before the invariant that is meant for it notices. A mistake often breaks something else on its way, and
/// which comes first changes with everything that draws a random number.
const VIOLATIONS_MAX: &str = "10";

/// What the copy asks which bug is awake.
const VARIABLE: &str = "BELLWETHER_BUG";

const SUITE: (&str, &str, &str) = ("bellwether-backend", "conformance", "the_store_in_memory_conforms");

/// Puts every bug in, one at a time, until it is caught.
pub(crate) fn all() -> Result<Verdict, Problem> {
    let watch = Stopwatch::start();
    let programs = build(&Workspace::load()?)?;
    say(&format!("planted and built in {}", span(watch.took())));
    let bugs: Vec<_> =
        TABLES.iter().flat_map(|(store, _, bugs)| bugs.iter().map(|bug| (*store, bug))).collect();
    let found = in_parallel(&bugs, |(store, bug)| programs.hunt(*store, bug));
    let mut caught = 0;
    for ((_, bug), found) in bugs.iter().zip(found) {
        match found? {
            Ok(how) => {
                caught += 1;
                say(&format!("{:<32} {how}", bug.name));
            }
            Err(why) => say(&format!("{:<32} NOT CAUGHT: {why}\n    {}", bug.name, bug.breaks)),
        }
    }
    say(&format!("{caught} of {} caught in {}", bugs.len(), span(watch.took())));
    Ok(if caught == bugs.len() { Verdict::Good } else { Verdict::Bad })
}

/// Runs the simulator with one bug in and these arguments.
pub(crate) fn one(name: &str, args: &[String]) -> Result<Verdict, Problem> {
    let names = || TABLES.iter().flat_map(|(_, _, bugs)| bugs.iter().map(|bug| bug.name));
    if !names().any(|known| known == name) {
        let all = names().collect::<Vec<_>>().join(", ");
        return Err(format!("there is no bug `{name}`{}; they are {all}", did_you_mean(name, names())));
    }
    let programs = build(&Workspace::load()?)?;
    let status = process::run(Command::new(&programs.simulator).env(VARIABLE, name).args(args))?;
    Ok(if status.success() { Verdict::Good } else { Verdict::Bad })
}

/// What keeps bugs from being planted: code that a table names and that is no longer there.
pub(crate) fn misplaced(tree: &Tree) -> Vec<String> {
    plant::all(tree).err().unwrap_or_default()
}

/// The programs with every bug in them, asleep.
struct Programs {
    simulator: PathBuf,
    suite: PathBuf,
}

fn build(workspace: &Workspace) -> Result<Programs, Problem> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(workspace.root.join("target"), PathBuf::from);
    let copy = workspace.root.join("target").join("planted");
    plant::copy(&workspace.root, &copy)?;
    let mut cargo = process::cargo(&copy);
    cargo.env("CARGO_TARGET_DIR", target);
    cargo.args(["build", "--quiet", "--message-format=json-render-diagnostics"]);
    cargo.args(["--package", sim::PACKAGE, "--bin", sim::PACKAGE]);
    let (package, test, _) = SUITE;
    cargo.args(["--package", package, "--test", test, "--features", &format!("{package}/conformance")]);
    let (mut simulator, mut suite) = (None, None);
    let status = process::listen(&mut cargo, |line| {
        let Some((name, path)) = process::built_program(line) else { return };
        match name.as_str() {
            sim::PACKAGE => simulator = Some(path),
            _ if name == test => suite = Some(path),
            _ => {}
        }
    })?;
    match (status.success(), simulator, suite) {
        (true, Some(simulator), Some(suite)) => Ok(Programs { simulator, suite }),
        _ => Err(format!(
            "the copy with the bugs in it, {}, does not build: see which `bad` of xtask/src/bugs no longer fits",
            copy.display()
        )),
    }
}

impl Programs {
    /// How it was caught, or why that does not count.
    fn hunt(&self, store: Option<&str>, bug: &Bug) -> Result<Result<String, String>, Problem> {
        let how = match self.simulate(store, bug)? {
            Ok(how) => how,
            missed => return Ok(missed),
        };
        Ok(match bug.case {
            Some(case) if !self.suite_notices(bug, case)? => Err(format!("the case \"{case}\" passes")),
            _ => Ok(how),
        })
    }

    fn simulate(&self, store: Option<&str>, bug: &Bug) -> Result<Result<String, String>, Problem> {
        let mut simulator = Command::new(&self.simulator);
        simulator.env(VARIABLE, bug.name);
        simulator.args(["--seeds", SEEDS_MAX, "--threads", "1", "--stop-after", VIOLATIONS_MAX]);
        simulator.args(store.iter().flat_map(|store| ["--store", store]));
        simulator.args(bug.caught_by.iter().flat_map(|invariant| ["--until", invariant]));
        let is_expected = |found: &str| {
            let invariant = found.split_once(": ").map_or("", |(_, said)| said);
            bug.caught_by.iter().any(|name| invariant.starts_with(&format!("{name} at ")))
        };
        let (mut caught, mut other) = (None, None);
        process::listen(&mut simulator, |line| {
            let Some(found) = line.strip_prefix("VIOLATION ") else { return };
            let place = if is_expected(found) { &mut caught } else { &mut other };
            place.get_or_insert_with(|| found.to_owned());
        })?;
        Ok(match (caught, other) {
            (Some(caught), _) => Ok(caught),
            (None, Some(other)) => Err(format!("not by {:?} but in {other}", bug.caught_by)),
            (None, None) => Err(format!("not in {SEEDS_MAX} seeds")),
        })
    }

    fn suite_notices(&self, bug: &Bug, case: &str) -> Result<bool, Problem> {
        let mut suite = Command::new(&self.suite);
        suite
            .env(VARIABLE, bug.name)
            .args([SUITE.2, "--exact", "--nocapture"])
            .stderr(std::process::Stdio::null());
        let mut noticed = false;
        process::listen(&mut suite, |line| {
            noticed |= line.starts_with("FAILED") && line.contains(case);
        })?;
        Ok(noticed)
    }
}

/// Does the jobs on every core; results in the order of the jobs.
fn in_parallel<J: Sync, R: Send>(jobs: &[J], work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, job)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    jobs.get(index).map(|job| (index, job))
                } {
                    let result = work(job);
                    done.lock().expect("no job panics with the lock in hand").push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no job panics with the lock in hand");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
