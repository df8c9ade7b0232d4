//! What is printed at the end.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bellwether_core::Bug;
use bellwether_sim::bugs::Caught;
use bellwether_sim::connection::lock;
use bellwether_sim::invariants::Violation;
use bellwether_sim::tally::Tally;
use bellwether_sim::time::SECOND;

pub(crate) fn figures(seeds: u64, tally: &Tally) {
    let hours = tally.virtual_time as f64 / (3_600.0 * SECOND as f64);
    println!("seeds {seeds}, virtual time {hours:.1}h, events {}, writes {}", tally.events, tally.commits);
    println!(
        "elections won {}, handovers {}, overlaps excused by a lost record {}",
        tally.elections, tally.handovers, tally.excused
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

pub(crate) fn bug_table(caught: &[Option<Caught>]) {
    println!("{:<32} {:>6}  how", "bug", "seed");
    for (bug, caught) in Bug::ALL.iter().zip(caught) {
        let name = format!("{bug:?}");
        match caught {
            Some(caught) => println!("{name:<32} {:>6}  {}", caught.seed, caught.violation),
            None => println!("{name:<32} {:>6}  NOT CAUGHT", "-"),
        }
    }
    let count = caught.iter().flatten().count();
    println!("{count} of {} caught", caught.len());
}

/// Does the jobs on so many threads; results in the order of the jobs.
pub(crate) fn in_parallel<J: Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    work: impl Fn(&J) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((index, job)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    jobs.get(index).map(|job| (index, job))
                } {
                    let result = work(job);
                    lock(&done).push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
