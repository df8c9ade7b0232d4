//! The suite that every backend passes against its real server, as far as its declared
//! [`Capabilities`](crate::Capabilities) go.
//!
//! A backend's author writes a [`Harness`]: how to connect, how to remove a record behind everybody's back, how to kill a
//! process. [`run`] plays every case on an election of its own, many at a time, and returns a [`Report`] of what passed,
//! what failed and why, and what was skipped and why. [`Report::assert_passed`] makes a test of it.
//!
//! What it owns: the stories, and what must be true in each. What it assumes: that the machine is not so busy that a call
//! takes a good part of a ttl. What it leaves to others: who believes what when (the core's tests), and long runs under
//! random faults (the simulator).
//!
//! Safety is judged so that a slow machine cannot fail it: a takeover is wrong if its answer came before the *start* of the
//! last renewal + ttl, which no delay brings about. Promptness has a bound, [`Harness::slack`].
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use bellwether_backend::conformance::{self, Harness};
//! # async fn test(my_harness: impl Harness) {
//! conformance::run(Arc::new(my_harness)).await.assert_passed();
//! # }
//! ```

mod case;
mod harness;
mod report;
mod stage;

mod crash;
mod epochs;
mod holding;
mod identity;
mod late;
mod names;
mod notes;
mod notifications;
mod observing;
mod once;
mod pauses;
mod requests;
mod stale;
mod time;
mod unknown;

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::Rng;
use tokio::sync::Semaphore;

use case::{Case, Stop};
pub use harness::Harness;
pub use report::{CaseOutcome, CaseResult, Report};
use stage::Stage;

/// Every case, by theme, in reading order.
const THEMES: &[&[Case]] = &[
    holding::CASES,
    time::CASES,
    stale::CASES,
    epochs::CASES,
    identity::CASES,
    unknown::CASES,
    late::CASES,
    observing::CASES,
    names::CASES,
    notifications::CASES,
    requests::CASES,
    pauses::CASES,
    notes::CASES,
    once::CASES,
    crash::CASES,
];

/// The names of all cases, as they stand in reports.
pub fn cases() -> impl Iterator<Item = &'static str> {
    all().map(|case| case.name)
}

/// Runs every case.
pub async fn run(harness: Arc<dyn Harness>) -> Report {
    run_some(harness, |_| true).await
}

/// Runs the cases whose name is wanted.
pub async fn run_some(harness: Arc<dyn Harness>, wanted: impl Fn(&str) -> bool) -> Report {
    let clock = harness.clock();
    // New for every run, so that two runs on one server do not meet.
    let nonce = clock.wall().as_unix_nanos().unsigned_abs() ^ (u64::from(std::process::id()) << 40);
    let mut seeds = Rng::new(nonce);
    let wanted = all().filter(|case| wanted(case.name));
    let (backend, can) = match harness.connect(clock).await {
        Ok(backend) => (backend.name(), backend.capabilities()),
        Err(error) => {
            let outcome = CaseOutcome::Failed(format!("cannot connect: {error}"));
            let failed =
                |case: &Case| CaseResult { case: case.name, outcome: outcome.clone(), took: Duration::ZERO };
            return Report { backend: error.backend(), results: wanted.map(failed).collect() };
        }
    };
    let at_once = Arc::new(Semaphore::new(harness.cases_at_once().max(1)));
    let (alone, together): (Vec<_>, Vec<_>) = wanted.partition(|case| case.alone);
    let mut running = Vec::new();
    for case in together {
        let (stage, at_once) = (Stage::set(&harness, can, case.name, seeds.next_u64()), Arc::clone(&at_once));
        running.push(tokio::spawn(async move {
            let _permit = at_once.acquire_owned().await;
            play(stage, case).await
        }));
    }
    let mut results = Vec::new();
    for case in running {
        results.push(case.await.expect("a panic of a case is caught inside"));
    }
    // Some look at the whole store, and want nobody else in it.
    for case in alone {
        results.push(play(Stage::set(&harness, can, case.name, seeds.next_u64()), case).await);
    }
    Report { backend, results }
}

fn all() -> impl Iterator<Item = &'static Case> {
    THEMES.iter().copied().flatten()
}

async fn play(stage: Stage, case: &'static Case) -> CaseResult {
    let clock = Arc::clone(&stage.clock);
    // The longest story waits for a few ttls; what takes several times as long will not end.
    let bound = 12 * stage.ttl + 4 * stage.slack + Duration::from_secs(10);
    let from = clock.boot();
    let mut task = tokio::spawn((case.run)(stage));
    let outcome = match tokio::time::timeout(bound, &mut task).await {
        Ok(Ok(Ok(()))) => CaseOutcome::Passed,
        Ok(Ok(Err(Stop::Failed(why)))) => CaseOutcome::Failed(why),
        Ok(Ok(Err(Stop::Skipped(why)))) => CaseOutcome::Skipped(why),
        Ok(Err(panicked)) => CaseOutcome::Failed(panicked.to_string()),
        Err(_) => {
            task.abort();
            CaseOutcome::Failed(format!("did not end within {bound:?}: a call hangs, or nobody is let in"))
        }
    };
    CaseResult { case: case.name, outcome, took: clock.boot().since(from) }
}
