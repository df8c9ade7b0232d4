//! `cargo xtask test`: every step of the table, each judged on its own.
//!
//! A step that fails does not stop the next one, since a person who waits for the tests wants all that is
//! wrong at once. Nothing passes by being absent: a package, a tool or a test program that is missing is a
//! failure with its name; what a test says that it cannot test here is listed. The last line is the sum.

mod binaries;
mod selection;
mod steps;
mod tally;

use crate::metadata::Workspace;
use crate::postgres::majors;
use crate::process::{Stopwatch, cargo, listen, run as run_to_end, say};
use crate::terminal::{Paint, on_stdout, span};
use crate::{Problem, Verdict, bugs, features, kubernetes, tidy};
use binaries::{Binaries, Variable};
use selection::Selection;
use std::collections::BTreeSet;
use std::time::Duration;
use steps::{Action, Program, Step};
use tally::Tally;

pub(crate) fn run(args: &[String]) -> Result<Verdict, Problem> {
    let selection = Selection::parse(args)?;
    let workspace = Workspace::load()?;
    let steps = match &selection.postgres {
        Some(majors) => steps::on_majors(majors),
        None => steps::all(&workspace),
    };
    if selection.list {
        steps.iter().for_each(|step| println!("{:12} {}", step.name, step.what));
        return Ok(Verdict::Good);
    }
    let (chosen, left_out) = selection.split(&steps)?;
    let watch = Stopwatch::start();
    if chosen.iter().any(|step| step.needs_apiserver()) {
        kubernetes::build_ahead();
    }
    let mut session = Session { workspace: &workspace, paint: on_stdout(), binaries: Binaries::default() };
    let everything = left_out.is_empty() && selection.postgres.is_none();
    let packages = if everything { Vec::new() } else { tested_packages(&chosen) };
    let results: Vec<Finished> = chosen.iter().map(|step| session.step(step, &packages)).collect();
    Ok(session.summary(&results, &left_out, watch.took()))
}

/// What `--only` takes.
pub(crate) fn step_names(workspace: &Workspace) -> Vec<String> {
    steps::all(workspace).into_iter().map(|step| step.name).collect()
}

/// The packages whose test programs are needed by these steps.
fn tested_packages(steps: &[&Step]) -> Vec<String> {
    let mut packages = BTreeSet::new();
    for step in steps {
        match &step.action {
            Action::Tests { package } => drop(packages.insert(package.clone())),
            Action::Programs { programs } | Action::OnMajor { programs, .. } => {
                packages.extend(programs.iter().map(|(package, ..)| (*package).to_owned()));
            }
            _ => {}
        }
    }
    packages.into_iter().collect()
}

struct Session<'a> {
    workspace: &'a Workspace,
    paint: Paint,
    binaries: Binaries,
}

struct Finished {
    name: String,
    tally: Tally,
    took: Duration,
    budget: Duration,
}

impl Session<'_> {
    fn step(&mut self, step: &Step, packages: &[String]) -> Finished {
        say(&self.paint.head(&format!("== {}: {} ==", step.name, step.what)));
        let watch = Stopwatch::start();
        let tally = self.attempt(step, packages).unwrap_or_else(|problem| {
            say(&format!("{} {problem}", self.paint.bad(&format!("{} failed:", step.name))));
            Tally::FAILED
        });
        let finished = Finished { name: step.name.clone(), tally, took: watch.took(), budget: step.budget };
        say(&self.line(&finished));
        finished
    }

    fn attempt(&mut self, step: &Step, packages: &[String]) -> Result<Tally, Problem> {
        for tool in step.needs {
            tool.provide()?;
        }
        match &step.action {
            Action::Tidy => tidy::check(false).map(Tally::of_verdict),
            Action::Features => {
                let (passed, failed) = features::check(self.workspace)?;
                Ok(Tally { passed, failed, ..Tally::default() })
            }
            Action::Build => {
                let present: Vec<&String> = packages.iter().filter(|name| self.workspace.has(name)).collect();
                // A chosen package that is missing fails by its own step; here it would only stop the others.
                if present.is_empty() && !packages.is_empty() {
                    return Err("none of the chosen packages is in the workspace".to_owned());
                }
                self.binaries = Binaries::build(self.workspace, &present)?;
                Ok(Tally::of_success(self.binaries.complete))
            }
            Action::Tests { package } => self.binaries.run(self.workspace.package(package)?),
            Action::OnMajor { major, programs } => {
                self.programs(programs, &[("BELLWETHER_TEST_POSTGRES", majors::provide(*major)?)])
            }
            Action::Programs { programs } => self.programs(programs, &[]),
            Action::Bugs => bugs::all().map(Tally::of_verdict),
            Action::Cargo { package, args, env, counted } => {
                if let Some(package) = package {
                    self.workspace.package(package)?;
                }
                let mut cargo = cargo(&self.workspace.root);
                cargo.args(*args).envs(env.iter().copied());
                if !counted {
                    return Ok(Tally::of_success(run_to_end(&mut cargo)?.success()));
                }
                let mut tally = Tally::default();
                let status = listen(&mut cargo, |line| {
                    say(line);
                    tally.read(line);
                })?;
                Ok(tally.ended(status.success()))
            }
        }
    }

    fn programs(&self, programs: &[Program], env: &[Variable]) -> Result<Tally, Problem> {
        let mut tally = Tally::default();
        for (package, program, tests) in programs {
            tally.add(self.binaries.run_test(self.workspace.package(package)?, program, tests, env)?);
        }
        Ok(tally)
    }

    fn line(&self, finished: &Finished) -> String {
        let Finished { name, tally, took, budget } = finished;
        let word = if tally.failed == 0 { self.paint.good("ok    ") } else { self.paint.bad("FAILED") };
        format!("{word} {name:12} {:34} {}", tally.to_string(), self.time(*took, *budget))
    }

    /// A time beside its budget. A slow machine is no failure, so one that is over stands out and nothing more.
    fn time(&self, took: Duration, budget: Duration) -> String {
        let text = format!("{:>12} of {}", span(took), span(budget));
        if took > budget {
            self.paint.bad(&format!("{text}: over its budget"))
        } else {
            self.paint.faint(&text)
        }
    }

    fn summary(&self, results: &[Finished], left_out: &[&str], took: Duration) -> Verdict {
        say("");
        say(&self.paint.head("== all of it =="));
        let mut sum = Tally::default();
        for finished in results {
            say(&self.line(finished));
            sum.add(finished.tally.clone());
        }
        say(&format!("{:54}{}", "all steps", self.time(took, steps::BUDGET)));
        if !left_out.is_empty() {
            say(&format!("left out by --only: {}", left_out.join(", ")));
        }
        if !sum.skipped.is_empty() {
            say(&self.paint.bad("not tested here:"));
            sum.skipped.iter().for_each(|what| say(&format!("  {what}")));
        }
        // Alone on its line, without colour: scripts look for it.
        say(&format!("{} passed, {} failed", sum.passed, sum.failed));
        if sum.failed == 0 { Verdict::Good } else { Verdict::Bad }
    }
}
