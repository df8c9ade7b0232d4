//! `bellwether-sim`: many worlds, or one of them in full.

mod args;
mod report;

use std::process::ExitCode;

use bellwether_deadman::boot_now;
use bellwether_sim::WorldOptions;
use bellwether_sim::campaign::Campaign;

use args::{Job, SimArgs};

fn main() -> ExitCode {
    match SimArgs::parse(std::env::args().skip(1)) {
        Ok(SimArgs { job: Job::Help, .. }) => {
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

fn run(args: &SimArgs) -> ExitCode {
    let clean = match args.job {
        Job::Help => true,
        Job::One(seed) => one(seed, args.verbose),
        Job::Many(ref campaign) => many(campaign),
    };
    if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn one(seed: u64, verbose: bool) -> bool {
    println!("{}", WorldOptions::of(seed));
    let outcome = bellwether_sim::run(seed, verbose);
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

fn many(campaign: &Campaign) -> bool {
    let started = boot_now();
    let progress = report::ProgressLine::new(campaign.count);
    let summary = campaign.run(|so_far| progress.show(so_far));
    let took = boot_now().since(started);
    report::figures(summary.seeds, &summary.tally);
    println!("hash of all {:016x}", summary.hash);
    report::violations(&summary.violations);
    report::speed(summary.seeds, took, campaign.threads);
    summary.violations.is_empty()
}
