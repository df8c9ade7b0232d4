//! What came of the suite under faults.

use std::fmt;
use std::time::Duration;

use bellwether_backend::conformance::Report;

use super::super::Fault;
use super::met::Met;

/// The cases that met one fault together.
#[derive(Debug)]
pub struct Batch {
    /// What happened to the leader.
    pub fault: Fault,
    /// Whether the cases waited until the cluster answered again.
    pub is_timed: bool,
    /// What the suite says.
    pub report: Report,
    /// From the fault to the first answer that anybody got; `None` if nobody did.
    pub outage: Option<Duration>,
    /// Cases whose first call was sent before that answer.
    pub met: usize,
    /// Cases that called at all.
    pub called: usize,
    /// Calls that were made again, since nobody knew how they had ended.
    pub repeated: usize,
}

impl Batch {
    pub(super) fn new(fault: Fault, is_timed: bool, report: Report, met: &Met) -> Batch {
        let ((before, called), repeated) = (met.cases(), met.repeated());
        Batch { fault, is_timed, report, outage: met.outage(), met: before, called, repeated }
    }
}

/// What came of one round.
#[derive(Debug)]
pub struct SuiteFigures {
    /// In the order in which they ran; the last one has the cases that wait until the cluster answers again.
    pub batches: Vec<Batch>,
}

impl SuiteFigures {
    /// Every case that failed, and what else is not as it should be.
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        for batch in &self.batches {
            let failed = batch.report.failed();
            complaints.extend(failed.map(|(case, why)| format!("leader {}: {case}: {why}", batch.fault)));
            if batch.outage.is_none() {
                complaints.push(format!("leader {}: nobody called after the fault", batch.fault));
            }
            // All are let go at once, long before another can lead; half of them leaves room for a machine that is busy just then.
            if !batch.is_timed && 2 * batch.met < batch.called {
                let (met, called) = (batch.met, batch.called);
                complaints.push(format!("leader {}: {met} of {called} cases met the outage", batch.fault));
            }
        }
        complaints
    }
}

impl fmt::Display for SuiteFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<14} {:>6} {:>7} {:>6} {:>9} {:>12} {:>14}",
            "the leader was", "passed", "skipped", "failed", "outage", "cases in it", "calls repeated"
        )?;
        for batch in &self.batches {
            let report = &batch.report;
            let counts = [report.passed().count(), report.skipped().count(), report.failed().count()];
            let met =
                if batch.is_timed { "-".to_owned() } else { format!("{} of {}", batch.met, batch.called) };
            let outage = batch.outage.map_or("-".to_owned(), |span| format!("{} ms", span.as_millis()));
            writeln!(
                f,
                "{:<14} {:>6} {:>7} {:>6} {outage:>9} {met:>12} {:>14}",
                batch.fault, counts[0], counts[1], counts[2], batch.repeated
            )?;
        }
        Ok(())
    }
}
