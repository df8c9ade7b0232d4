//! What came of a run.

use std::fmt;
use std::time::Duration;

/// What came of each case.
#[derive(Clone, Debug)]
pub struct Report {
    /// The backend's name.
    pub backend: &'static str,
    /// Case by case, in the suite's order; those that ran alone come last.
    pub results: Vec<CaseResult>,
}

/// What came of one case.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The case's name.
    pub case: &'static str,
    /// What was found.
    pub outcome: CaseOutcome,
    /// How long it took.
    pub took: Duration,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseOutcome {
    /// As it should be.
    Passed,
    /// Not tried, and why.
    Skipped(String),
    /// Not as it should be, and how.
    Failed(String),
}

impl Report {
    /// The cases that failed, each with its reason.
    pub fn failed(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.results.iter().filter_map(|result| match &result.outcome {
            CaseOutcome::Failed(why) => Some((result.case, why.as_str())),
            CaseOutcome::Passed | CaseOutcome::Skipped(_) => None,
        })
    }

    /// The cases that were skipped, each with its reason.
    pub fn skipped(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.results.iter().filter_map(|result| match &result.outcome {
            CaseOutcome::Skipped(why) => Some((result.case, why.as_str())),
            CaseOutcome::Passed | CaseOutcome::Failed(_) => None,
        })
    }

    /// The cases that passed.
    pub fn passed(&self) -> impl Iterator<Item = &'static str> {
        self.results.iter().filter(|result| result.outcome == CaseOutcome::Passed).map(|result| result.case)
    }

    /// Prints what was skipped, and panics with the whole table if anything failed or nothing ran.
    pub fn assert_passed(&self) {
        for (case, why) in self.skipped() {
            eprintln!("{}: skipped: {case}: {why}", self.backend);
        }
        assert!(self.passed().next().is_some(), "nothing ran\n{self}");
        assert!(self.failed().next().is_none(), "the backend does not conform\n{self}");
    }
}

/// A table, with the failures again at its end, where they are seen.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.results.iter().map(|result| result.case.chars().count()).max().unwrap_or(0);
        for CaseResult { case, outcome, took } in &self.results {
            let (word, why) = match outcome {
                CaseOutcome::Passed => ("passed ", ""),
                CaseOutcome::Skipped(why) => ("skipped", why.as_str()),
                CaseOutcome::Failed(why) => ("FAILED ", why.as_str()),
            };
            let line = format!("{word}  {case:width$}  {:>6} ms  {why}", took.as_millis());
            writeln!(f, "{}", line.trim_end())?;
        }
        let (failed, skipped) = (self.failed().count(), self.skipped().count());
        let passed = self.passed().count();
        write!(f, "{}: {passed} passed, {skipped} skipped, {failed} failed", self.backend)?;
        for (case, why) in self.failed() {
            write!(f, "\nFAILED   {case}: {why}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcomes: [CaseOutcome; 2]) -> Report {
        let result = |outcome| CaseResult { case: "a case", outcome, took: Duration::from_millis(7) };
        Report { backend: "test", results: outcomes.map(result).into() }
    }

    #[test]
    fn a_report_without_failures_passes_and_names_what_was_skipped() {
        let report = report([CaseOutcome::Passed, CaseOutcome::Skipped("no need".to_owned())]);
        report.assert_passed();
        let text = report.to_string();
        assert!(text.contains("skipped  a case       7 ms  no need"), "{text}");
        assert!(text.ends_with("test: 1 passed, 1 skipped, 0 failed"), "{text}");
    }

    #[test]
    #[should_panic(expected = "FAILED   a case: two leaders")]
    fn one_failure_is_enough_to_panic_with_its_reason() {
        report([CaseOutcome::Passed, CaseOutcome::Failed("two leaders".to_owned())]).assert_passed();
    }

    #[test]
    #[should_panic(expected = "nothing ran")]
    fn a_run_that_skipped_everything_proves_nothing() {
        report([(); 2].map(|()| CaseOutcome::Skipped("no server".to_owned()))).assert_passed();
    }
}
