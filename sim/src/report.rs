//! What is printed at the end.

use std::time::Duration;

use bellwether_sim::invariants::Violation;
use bellwether_sim::tally::Tally;
use bellwether_sim::time::SECOND;

pub(crate) fn figures(seeds: u64, tally: &Tally) {
    let hours = tally.virtual_time as f64 / (3_600.0 * SECOND as f64);
    println!("seeds {seeds}, virtual time {hours:.1}h, events {}, writes {}", tally.events, tally.commits);
    println!(
        "elections won {}, handovers {}, claims lost to another write {}, overlaps excused by a lost record {}",
        tally.elections, tally.handovers, tally.claims_lost, tally.excused
    );
    println!(
        "somebody led {:.1}% of the time; slowest recovery {:.1}s; highest share of a bound used: recovery {:.1}%, \
         failover {:.1}%",
        100.0 * tally.led as f64 / tally.virtual_time.max(1) as f64,
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
