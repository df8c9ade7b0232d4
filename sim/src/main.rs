//! `bellwether-sim`: many worlds, or one of them in full, or the known bugs.

mod args;
mod report;

use std::io::IsTerminal;
use std::process::ExitCode;

use bellwether_core::{Bug, Planted};
use bellwether_deadman::boot_now;
use bellwether_sim::{Options, bugs, campaign};

use args::{Args, Job};

fn main() -> ExitCode {
    match Args::parse(std::env::args().skip(1)) {
        Ok(Args { job: Job::Help, .. }) => {
            print!("{}", args::HELP);
            ExitCode::SUCCESS
        }
        Ok(args) => run(&args),
        Err(problem) => {
            eprintln!("bellwether-sim: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> ExitCode {
    let clean = match args.job {
        Job::Help => true,
        Job::One(seed) => one(seed, args.planted, args.verbose),
        Job::Many { from, count } => many(from, count, args),
        Job::Bugs => all_bugs(args.threads),
    };
    if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn one(seed: u64, planted: Option<Bug>, verbose: bool) -> bool {
    println!("{}", Options::of(seed));
    let outcome = bellwether_sim::run(seed, planted.map(Planted::with).unwrap_or_default(), verbose);
    for line in &outcome.story {
        println!("{line}");
    }
    report::figures(1, &outcome.tally);
    println!("hash {:016x}", outcome.hash);
    match outcome.violation {
        Some(violation) => println!("VIOLATION {violation}"),
        None => return true,
    }
    false
}

fn many(from: u64, count: u64, args: &Args) -> bool {
    let threads = args.threads;
    let started = boot_now();
    let on_terminal = std::io::stderr().is_terminal();
    let summary = campaign::run(from, count, args.store, threads, |done| {
        if on_terminal && (done.is_multiple_of(10) || done == count) {
            eprint!("\r{done} of {count} seeds");
        }
    });
    if on_terminal {
        eprintln!();
    }
    let took = boot_now().since(started);
    report::figures(summary.seeds, &summary.tally);
    report::violations(&summary.violations);
    report::speed(summary.seeds, took, threads);
    summary.violations.is_empty()
}

fn all_bugs(threads: usize) -> bool {
    let started = boot_now();
    let caught = report::in_parallel(&Bug::ALL, threads, |bug| bugs::hunt(*bug, bugs::SEEDS_MAX));
    report::bug_table(&caught);
    println!("wall time {:.1}s", boot_now().since(started).as_secs_f64());
    caught.iter().all(Option::is_some)
}
