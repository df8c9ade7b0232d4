//! What came of a run: the verdict, the figures, and how to have it again.

mod attribution;
mod json;
mod lines;

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_audit::{Audit, Gap, Judgement, Verdict};
use bellwether_core::{Boot, ElectionName};

use crate::protected::{Fencing, Protected};
use crate::settings::Settings;
use crate::{Kind, plan};

/// What came of a run.
#[derive(Debug)]
pub struct Report {
    /// What the faults were drawn from.
    pub seed: u64,
    /// The election.
    pub election: ElectionName,
    /// How long faults happened.
    pub elapsed: Duration,
    /// Whether it was interrupted.
    pub is_cut_short: bool,
    /// By the candidates' event lines.
    pub verdict: Verdict,
    /// What else is wrong, a sentence each.
    pub complaints: Vec<String>,
    /// Further ones, which are only counted.
    pub more_complaints: usize,
    /// How often somebody else, or the same candidate anew, began to lead after a leadership had ended.
    pub changes: usize,
    /// By kind, those that were asked for and possible.
    pub faults: BTreeMap<Kind, FaultFigures>,
    /// Changes that no fault explains, and how long nobody led.
    pub unexplained: FaultFigures,
    /// Faults that were left out, and why.
    pub left_out: BTreeMap<Kind, String>,
    /// What witnesses wrote.
    pub fencing: Fencing,
}

/// What one kind of fault did.
#[derive(Clone, Debug, Default)]
pub struct FaultFigures {
    /// How often the plan has it, within the time that there was.
    pub planned: usize,
    /// How often it was done.
    pub done: usize,
    /// How often the next leadership came after it.
    pub changes: usize,
    /// How long nobody led at those changes, where that is known.
    pub(crate) gaps: Vec<Duration>,
}

/// A fault that was done.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    pub(crate) kind: Kind,
    /// To which start of a candidate.
    pub(crate) incarnation: Option<String>,
    /// The instant before.
    pub(crate) at: Boot,
}

impl FaultFigures {
    /// How long nobody led: the middle, and the worst.
    pub fn gap(&self) -> Option<Gap> {
        Gap::of(&self.gaps)
    }
}

impl Report {
    /// The verdict in a word.
    pub fn judgement(&self) -> Judgement {
        match self.is_broken() {
            true => Judgement::Violated,
            false => self.verdict.judgement(),
        }
    }

    fn is_broken(&self) -> bool {
        !self.complaints.is_empty() || self.fencing.checked_late > 0
    }
}

/// What a run has recorded.
pub(crate) struct Recorded {
    pub(crate) settings: Settings,
    pub(crate) audit: Audit,
    pub(crate) protected: Protected,
    pub(crate) hits: Vec<Hit>,
    pub(crate) complaints: Vec<String>,
    pub(crate) more_complaints: usize,
}

impl Recorded {
    /// Judges it, once everything has ended.
    pub(crate) fn report(self, elapsed: Duration, is_cut_short: bool) -> Report {
        let Recorded { settings, audit, protected, hits, complaints, more_complaints } = self;
        let mut faults: BTreeMap<Kind, FaultFigures> =
            settings.kinds.iter().map(|kind| (*kind, FaultFigures::default())).collect();
        let mut of = |kind: Kind, change: &dyn Fn(&mut FaultFigures)| change(faults.entry(kind).or_default());
        for step in plan(&settings.plan()).iter().filter(|step| step.at < elapsed) {
            of(step.fault.kind(), &|figures| figures.planned += 1);
        }
        for hit in &hits {
            of(hit.kind, &|figures| figures.done += 1);
        }
        let verdict = audit.verdict();
        let mut unexplained = FaultFigures::default();
        let changes = attribution::changes(&verdict.leaderships, &hits);
        for change in &changes {
            let note = |figures: &mut FaultFigures| {
                figures.changes += 1;
                figures.gaps.extend(change.gap);
            };
            match change.after {
                Some(kind) => of(kind, &note),
                None => note(&mut unexplained),
            }
        }
        let broken = protected.told_broken().into_iter().map(|told| format!("exclusion broken: {told}"));
        Report {
            seed: settings.seed,
            election: settings.election,
            elapsed,
            is_cut_short,
            verdict,
            complaints: broken.chain(complaints).collect(),
            more_complaints,
            changes: changes.len(),
            faults,
            unexplained,
            left_out: settings.left_out,
            fencing: protected.fencing(),
        }
    }
}
