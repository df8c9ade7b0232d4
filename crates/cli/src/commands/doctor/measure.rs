//! How quick the store is: reads, and an election of our own that is claimed, renewed, released and taken away again.
//!
//! The election's name is random, so that nobody else's is touched and two doctors do not meet. Calls are never cut short, as
//! a backend may expect; whoever does not want to wait interrupts, and then what was claimed is released first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether::backend::{Bid, Discarded, Finding, Grant, Outcome, Probing, ReleaseOptions};
use bellwether::{
    Backend, Candidate, CandidateId, ElectionName, ErrorKind, Incarnation, StoreError, Timing, boot_now,
};
use bellwether_deadman::random_bits;

use super::DoctorReport;
use crate::commands::signals::Signals;
use crate::exit::{Exit, Failure};
use crate::output::span;

/// The number of reads, and of renewals.
const CALLS: usize = 20;
/// How long the release and the cleanup may take after an interrupt.
const LEAVING_MAX: Duration = Duration::from_secs(3);

/// How long calls took.
pub(super) struct Latency {
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    pub(super) calls: usize,
}

/// Whether somebody asked us to leave.
pub(super) struct Leaving(Arc<AtomicBool>);

impl Leaving {
    /// The first signal asks; the second, or a store that does not answer, ends the process.
    pub(super) fn listen() -> Result<Leaving, Failure> {
        let mut signals = Signals::new()?;
        let asked = Arc::new(AtomicBool::new(false));
        let leaving = Leaving(Arc::clone(&asked));
        tokio::spawn(async move {
            signals.leave().await;
            asked.store(true, Ordering::Relaxed);
            let _ = tokio::time::timeout(LEAVING_MAX, signals.leave()).await;
            std::process::exit(Exit::Unavailable.code().into());
        });
        Ok(leaving)
    }

    fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Reads, and, if it may, takes part.
pub(super) async fn measure(
    backend: &dyn Backend,
    probing: Probing<'_>,
    timing: &Timing,
    leaving: &Leaving,
) -> DoctorReport {
    let own =
        || ElectionName::new(format!("bellwether-doctor-{:016x}", random_bits() as u64)).expect("a name");
    let on = if let Probing::LookAt(on) = probing { on.clone() } else { own() };
    let mut report = DoctorReport { backend: Some(backend.name()), ..DoctorReport::default() };
    let findings = &mut report.findings;
    report.reads = match read(backend, &on, leaving).await {
        Ok(reads) => reads,
        Err(error) => {
            findings.push(Finding::failed("reachable", &error));
            return report;
        }
    };
    findings.push(Finding::good("reachable", format!("the {} store answers", backend.name())));
    findings.extend(report.reads.as_ref().map(|reads| judge("read latency", reads, timing)));
    if probing == Probing::Write {
        let (latency, found) = take_part(backend, &on, timing, leaving).await;
        findings.extend(latency.as_ref().map(|latency| judge("renew latency", latency, timing)));
        findings.extend(found);
        report.renewals = latency;
    } else {
        let without = if probing == Probing::Look { "--no-write" } else { "ELECTION" };
        let sentence = format!("none was held: run without {without} to measure writes too");
        findings.push(Finding::good("election", sentence));
    }
    report
}

async fn read(
    backend: &dyn Backend,
    on: &ElectionName,
    leaving: &Leaving,
) -> Result<Option<Latency>, StoreError> {
    let mut times = Vec::with_capacity(CALLS);
    while times.len() < CALLS && !leaving.is_asked() {
        let before = boot_now();
        backend.observe(on).await?;
        times.push(boot_now().since(before));
    }
    Ok(latency(times))
}

/// Claims, renews, releases, clears away; the findings say how it went and what is left.
async fn take_part(
    backend: &dyn Backend,
    on: &ElectionName,
    timing: &Timing,
    leaving: &Leaving,
) -> (Option<Latency>, Vec<Finding>) {
    let id = CandidateId::new("bellwether-doctor").expect("an id");
    let who = Candidate { id, incarnation: Incarnation::from_bits(random_bits()) };
    let claimed = done(backend, backend.claim(on, &Bid::new(who.clone(), timing.ttl(), boot_now())).await);
    let held = match claimed {
        Ok(grant) => {
            let renewed = renew(backend, on, &grant, leaving).await;
            let released = done(backend, backend.release(on, &grant, &ReleaseOptions::default()).await);
            renewed.and_then(|latency| released.map(|()| latency))
        }
        Err(error) => Err(error),
    };
    backend.retire(on, &who);
    let discarded = backend.danger_discard(on).await;
    match held {
        Ok(latency) => (latency, vec![left(on, discarded)]),
        Err(error) => {
            let mut findings = vec![Finding::failed("election", &error)];
            if let Ok(Discarded::Remains(what)) = discarded {
                findings.push(Finding::warning("election", format!("left behind, safe to remove: {what}")));
            }
            (None, findings)
        }
    }
}

fn left(on: &ElectionName, discarded: Result<Discarded, StoreError>) -> Finding {
    let sentence = format!("{on} was claimed, renewed, released");
    match discarded {
        Ok(Discarded::Gone) => Finding::good("election", format!("{sentence} and removed")),
        Ok(Discarded::Remains(what)) => {
            Finding::good("election", format!("{sentence}; left behind, safe to remove: {what}"))
        }
        Err(error) => Finding::warning(
            "election",
            format!("{sentence}, but could not be removed; it is released and harmless: {error}"),
        ),
    }
}

async fn renew(
    backend: &dyn Backend,
    on: &ElectionName,
    grant: &Grant,
    leaving: &Leaving,
) -> Result<Option<Latency>, StoreError> {
    let (mut times, mut grant) = (Vec::with_capacity(CALLS), grant.clone());
    while times.len() < CALLS && !leaving.is_asked() {
        let sent = boot_now();
        let renewed = backend.renew(on, &grant, sent).await;
        times.push(boot_now().since(sent));
        grant = done(backend, renewed)?;
    }
    Ok(latency(times))
}

fn done<T>(backend: &dyn Backend, outcome: Outcome<T>) -> Result<T, StoreError> {
    match outcome {
        Outcome::Done(done) => Ok(done),
        Outcome::Unknown(error) | Outcome::Refused(error) => Err(error),
        Outcome::Denied(_) => {
            let sentence =
                "a claim that nobody contests was denied: does something delete records of the store?";
            Err(StoreError::new(ErrorKind::Unavailable, backend.name(), sentence))
        }
    }
}

fn latency(mut times: Vec<Duration>) -> Option<Latency> {
    times.sort();
    let calls = times.len();
    let at = |part: usize| times.get((calls * part).div_ceil(100).saturating_sub(1)).copied();
    Some(Latency { p50: at(50)?, p99: at(99)?, calls })
}

/// Against the settings: a call that takes its time-out counts as failed, and one failed renewal is all that fits.
fn judge(what: &'static str, latency: &Latency, timing: &Timing) -> Finding {
    let Latency { p50, p99, calls } = *latency;
    let limit = timing.call_timeout();
    let (renew, ttl) = (timing.renew(), timing.ttl());
    let measured = format!("p50 {}, p99 {} of {calls} calls", span(p50), span(p99));
    let against = format!("the call time-out is {}, a renewal is due every {}", span(limit), span(renew));
    // With the other settings derived from it, half the time-out is then what the slowest call took.
    let enough = Duration::from_secs((p99 * 10).as_secs() + 1).max(ttl * 2);
    let advice = format!("bring the store closer, or set at least --ttl {}", span(enough));
    if p99 >= limit {
        Finding::bad(
            what,
            ErrorKind::TimedOut,
            format!("{measured}, and {against}: leaders would lose their leadership; {advice}"),
        )
    } else if p99 * 2 >= limit {
        Finding::warning(what, format!("{measured}, and {against}: there is little margin; {advice}"))
    } else {
        Finding::good(what, format!("{measured}; {against}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether::TimingOptions;
    use bellwether::backend::Grade;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_store_is_judged_by_what_the_settings_leave_it() {
        let mut options = TimingOptions::default();
        options.ttl = ms(1_500);
        let timing = Timing::new(&options).unwrap();
        assert_eq!(timing.call_timeout(), ms(300));
        let verdict = |p99| judge("renew latency", &Latency { p50: ms(1), p99, calls: 20 }, &timing);
        assert_eq!(verdict(ms(100)).grade, Grade::Good);
        assert_eq!(verdict(ms(150)).grade, Grade::Warning);
        let slow = verdict(ms(300));
        assert_eq!(slow.grade, Grade::Bad(ErrorKind::TimedOut));
        assert!(slow.sentence.contains("--ttl 4s"), "{}", slow.sentence);
    }

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let found = latency((1..=20).rev().map(ms).collect()).unwrap();
        assert_eq!((found.p50, found.p99, found.calls), (ms(10), ms(20), 20));
        assert!(latency(Vec::new()).is_none());
    }
}
