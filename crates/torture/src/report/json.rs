//! The report for machines.

use bellwether_audit::Gap;
use serde_json::{Value, json};

use super::{FaultFigures, Report};

impl Report {
    /// Everything that [`Report::lines`] says, and all violations.
    pub fn json(&self) -> Value {
        let found = |kind: &str, sentence: String| json!({ "kind": kind, "sentence": sentence });
        let mut violations: Vec<Value> =
            self.verdict.violations.iter().map(|one| found(one.kind(), one.to_string())).collect();
        violations.extend(self.complaints.iter().map(|one| found("process", one.clone())));
        let doubts: Vec<Value> =
            self.verdict.doubts.iter().map(|one| found(one.kind(), one.to_string())).collect();
        let mut faults: Vec<Value> =
            self.faults.iter().map(|(kind, figures)| figures_json(kind.as_str(), figures)).collect();
        faults.push(figures_json("none", &self.unexplained));
        let left_out: Vec<Value> =
            self.left_out.iter().map(|(kind, why)| json!({ "fault": kind.as_str(), "why": why })).collect();
        let fencing = &self.fencing;
        json!({
            "verdict": self.judgement().as_str(),
            "interrupted": self.is_cut_short,
            "seed": self.seed,
            "election": self.election.as_str(),
            "elapsed_ms": self.elapsed.as_millis() as u64,
            "changes": self.changes,
            "violations": violations,
            "violations_more": self.more_complaints,
            "unknown": doubts,
            "lines": self.verdict.figures.lines,
            "starts": self.verdict.figures.candidates,
            "faults": faults,
            "left_out": left_out,
            "fencing": {
                "unchecked": fencing.unchecked, "unchecked_late": fencing.unchecked_late,
                "checked": fencing.checked, "checked_late": fencing.checked_late, "refused": fencing.refused,
            },
        })
    }
}

fn figures_json(name: &str, figures: &FaultFigures) -> Value {
    let ms = |gap: Gap| {
        json!({
            "count": gap.count,
            "median_ms": gap.median.as_secs_f64() * 1e3,
            "p99_ms": gap.p99.as_secs_f64() * 1e3,
            "max_ms": gap.max.as_secs_f64() * 1e3,
        })
    };
    let FaultFigures { planned, done, changes, .. } = *figures;
    json!({ "fault": name, "planned": planned, "done": done, "changes": changes, "nobody_led": figures.gap().map(ms) })
}
