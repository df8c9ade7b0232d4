//! The report for people.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_audit::{Gap, Judgement};
use bellwether_core::duration::print;

use super::{FaultFigures, Report};

/// Violations, doubts and complaints that are shown one by one; the others are counted.
const SHOWN_MAX: usize = 20;

impl Report {
    /// The verdict first, then what is wrong, then the figures.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.headline()];
        let wrong = self.wrong();
        lines.extend(wrong.iter().take(SHOWN_MAX).cloned());
        let more = wrong.len().saturating_sub(SHOWN_MAX) + self.more_complaints;
        if more > 0 {
            lines.push(format!("and {more} more; -o json has them all, up to a hundred of each"));
        }
        lines.push(self.counts());
        lines.push(self.fenced());
        lines.extend(self.table());
        lines.extend(self.left_out());
        lines
    }

    /// A line for each reason.
    fn left_out(&self) -> Vec<String> {
        let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (kind, why) in &self.left_out {
            kinds.entry(why).or_default().push(kind.as_str());
        }
        kinds.iter().map(|(why, kinds)| format!("left out: {}: {why}", kinds.join(", "))).collect()
    }

    fn headline(&self) -> String {
        let early = if self.is_cut_short { "interrupted; until then, " } else { "" };
        match self.judgement() {
            Judgement::Clean => {
                format!(
                    "{early}clean: nobody led beside another, epochs rose, no fenced write of an old leader landed"
                )
            }
            Judgement::Violated => {
                let broken = self.verdict.violations.len() + self.complaints.len() + self.more_complaints;
                let late = usize::from(self.fencing.checked_late > 0);
                format!("{early}VIOLATED: {} broken promises", broken + late)
            }
            Judgement::Unknown => format!("{early}unknown: the event lines do not tell"),
        }
    }

    /// What is wrong or in doubt, a line each.
    fn wrong(&self) -> Vec<String> {
        let violations = self.verdict.violations.iter().map(|one| format!("VIOLATION {one}"));
        let complaints = self.complaints.iter().map(|one| format!("VIOLATION {one}"));
        let late = self.fencing.checked_late;
        let fence = (late > 0).then(|| {
            format!("VIOLATION {late} writes of an older epoch passed the fence after a newer one's")
        });
        let doubts = self.verdict.doubts.iter().map(|one| format!("UNKNOWN {one}"));
        violations.chain(complaints).chain(fence).chain(doubts).collect()
    }

    fn counts(&self) -> String {
        let done: usize = self.faults.values().map(|figures| figures.done).sum();
        format!(
            "{} leadership changes under {done} faults in {}; {} event lines of {} starts of candidates",
            self.changes,
            span(self.elapsed),
            self.verdict.figures.lines,
            self.verdict.figures.candidates
        )
    }

    fn fenced(&self) -> String {
        let fencing = &self.fencing;
        format!(
            "late writes of old leaders: {} of {} landed unchecked, {} of {} landed where the epoch is checked, {} were refused there",
            fencing.unchecked_late, fencing.unchecked, fencing.checked_late, fencing.checked, fencing.refused
        )
    }

    /// A row for each kind of fault.
    fn table(&self) -> Vec<String> {
        let heading = row(["fault", "planned", "done", "changes", "nobody led: median", "p99", "max"]);
        let of = |(kind, figures): (_, &FaultFigures)| figures_row(kind, figures);
        let mut rows: Vec<String> =
            self.faults.iter().map(|(kind, figures)| (kind.as_str(), figures)).map(of).collect();
        if self.unexplained.changes > 0 {
            rows.push(figures_row("none of these", &self.unexplained));
        }
        std::iter::once(heading).chain(rows).collect()
    }
}

fn figures_row(name: &str, figures: &FaultFigures) -> String {
    let shown = |pick: fn(Gap) -> Duration| figures.gap().map_or("-".to_owned(), |gap| span(pick(gap)));
    let (median, p99, max) = (shown(|gap| gap.median), shown(|gap| gap.p99), shown(|gap| gap.max));
    let [planned, done, changes] =
        [figures.planned, figures.done, figures.changes].map(|count| count.to_string());
    row([name, &planned, &done, &changes, &median, &p99, &max])
}

fn row(cells: [&str; 7]) -> String {
    let [kind, planned, done, changes, median, p99, max] = cells;
    format!("{kind:<14}{planned:>8}{done:>7}{changes:>9}{median:>20}{p99:>11}{max:>11}")
}

/// Without more digits than anybody reads.
fn span(duration: Duration) -> String {
    let step = if duration >= Duration::from_secs(1) { 1_000_000 } else { 10_000 };
    let nanos = duration.as_nanos() / step * step;
    print(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}
