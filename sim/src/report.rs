//! What is printed at the end.

use std::io::IsTerminal;
use std::time::Duration;

use bellwether_sim::campaign::Summary;
use bellwether_sim::invariants::Violation;
use bellwether_sim::tally::{Tally, WorldCounts};
use bellwether_sim::time::SECOND;

pub(crate) fn figures(seeds: u64, tally: &Tally) {
    let hours = tally.virtual_time as f64 / (3_600.0 * SECOND as f64);
    println!("seeds {seeds}, virtual time {hours:.1}h, events {}, writes {}", tally.events, tally.commits);
    let WorldCounts { registers, sessions, rafts, several, pairs } = tally.worlds;
    println!(
        "worlds with a register {registers}, with sessions {sessions}, with a Raft cluster {rafts}; with several elections {several}, \
         with two candidates of one in a process {pairs}"
    );
    println!(
        "elections won {}, of these {} by a process that led another already, handovers {}, claims lost to another write {}, \
         overlaps excused by a lost record {}",
        tally.elections, tally.beside, tally.handovers, tally.claims_lost, tally.excused
    );
    println!(
        "elections were led {:.1}% of the time; slowest recovery {:.1}s; highest share of a bound used: recovery {:.1}%, \
         failover {:.1}%",
        100.0 * tally.led as f64 / tally.election_time.max(1) as f64,
        tally.recovery_max as f64 / SECOND as f64,
        tally.recovery_share_max as f64 / 10.0,
        tally.failover_share_max as f64 / 10.0
    );
    let faults: Vec<String> = tally
        .faults()
        .filter(|(_, count)| *count > 0)
        .map(|(fault, count)| format!("{fault} {count}"))
        .collect();
    println!("faults: {}", faults.join(", "));
}

/// Where nobody looks on, a line after so many seeds is enough.
const LINE_EVERY: u64 = 1_000;

/// How far a campaign has come, on standard error.
pub(crate) struct ProgressLine {
    count: u64,
    on_terminal: bool,
}

impl ProgressLine {
    /// Of a campaign of so many seeds.
    pub(crate) fn new(count: u64) -> ProgressLine {
        ProgressLine { count, on_terminal: std::io::stderr().is_terminal() }
    }

    /// So much is done.
    pub(crate) fn show(&self, so_far: &Summary) {
        let (seeds, count) = (so_far.seeds, self.count);
        let is_last = seeds == count;
        let line = || {
            let hours = so_far.tally.virtual_time as f64 / (3_600.0 * SECOND as f64);
            let (won, violations) = (so_far.tally.elections, so_far.violations.len());
            format!("{seeds} of {count} seeds, {hours:.0}h, elections won {won}, violations {violations}")
        };
        if self.on_terminal && (seeds.is_multiple_of(10) || is_last) {
            eprint!("\r{}", line());
            if is_last {
                eprintln!();
            }
        } else if !self.on_terminal && (seeds.is_multiple_of(LINE_EVERY) || is_last) {
            eprintln!("{}", line());
        }
    }
}

pub(crate) fn violations(violations: &[(u64, Violation)]) {
    for (seed, violation) in violations {
        println!("VIOLATION seed {seed}: {violation}");
        println!("    again with: cargo xtask sim --seed {seed} -v");
    }
    println!("violations {}", violations.len());
}

pub(crate) fn speed(seeds: u64, took: Duration, threads: usize) {
    let seconds = took.as_secs_f64();
    println!("wall time {seconds:.1}s on {threads} threads, {:.1} seeds/s", seeds as f64 / seconds.max(1e-9));
}
