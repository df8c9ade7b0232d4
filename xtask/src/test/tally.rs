//! Counting what passed and what failed, and noting what was left out.

use crate::Verdict;
use std::fmt;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: u64,
    pub(super) failed: u64,
    /// Not run because the test itself says so; shown, and in neither sum.
    pub(super) ignored: u64,
    /// What tests that passed did not test here, and why: what they print after [`SKIPPED`].
    pub(super) skipped: Vec<String>,
}

/// How a line begins by which a test says that it leaves something out.
const SKIPPED: &str = "skipped: ";

impl Tally {
    pub(super) const FAILED: Tally = Tally { passed: 0, failed: 1, ignored: 0, skipped: Vec::new() };
    const PASSED: Tally = Tally { passed: 1, failed: 0, ignored: 0, skipped: Vec::new() };

    /// A step that is good or bad as a whole.
    pub(super) fn of_success(success: bool) -> Tally {
        if success { Tally::PASSED } else { Tally::FAILED }
    }

    pub(super) fn of_verdict(verdict: Verdict) -> Tally {
        Tally::of_success(verdict == Verdict::Good)
    }

    pub(super) fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.skipped.extend(other.skipped);
    }

    /// Adds what a `test result:` line says, and tells whether this was one. Notes what is left out.
    pub(super) fn read(&mut self, line: &str) -> bool {
        self.skipped.extend(line.strip_prefix(SKIPPED).map(str::to_owned));
        let counts = result_line(line);
        let found = counts.is_some();
        self.add(counts.unwrap_or_default());
        found
    }

    /// The end of the program whose lines were read: one that fails without a failed test (it crashed, it did
    /// not build) has failed all the same.
    pub(super) fn ended(mut self, success: bool) -> Tally {
        if !success && self.failed == 0 {
            self.failed = 1;
        }
        self
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.ignored > 0 {
            write!(f, ", {} ignored", self.ignored)?;
        }
        if !self.skipped.is_empty() {
            write!(f, ", {} skipped", self.skipped.len())?;
        }
        Ok(())
    }
}

/// `test result: ok. 18 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.17s`
fn result_line(line: &str) -> Option<Tally> {
    let (_verdict, counts) = line.trim().strip_prefix("test result: ")?.split_once(". ")?;
    let mut tally = Tally::default();
    for part in counts.split(';') {
        let Some((number, word)) = part.trim().split_once(' ') else { continue };
        let Ok(number) = number.parse::<u64>() else { continue };
        match word {
            "passed" => tally.passed = number,
            "failed" => tally.failed = number,
            "ignored" => tally.ignored = number,
            _ => {}
        }
    }
    Some(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_summed_what_was_skipped_is_noted_and_other_lines_do_not_count() {
        let mut tally = Tally::default();
        for line in [
            "running 18 tests",
            "test result: ok. 18 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.17s",
            "test a::b ... FAILED",
            "skipped: a::c: a PID namespace needs root",
            "test result: FAILED. 3 passed; 2 failed; 1 ignored; 0 measured; 4 filtered out; finished in 1s",
            "the test result: ok. 9 passed; 9 failed",
        ] {
            tally.read(line);
        }
        let skipped = vec!["a::c: a PID namespace needs root".to_owned()];
        assert_eq!(tally, Tally { passed: 21, failed: 2, ignored: 1, skipped });
        assert_eq!(tally.to_string(), "21 passed, 2 failed, 1 ignored, 1 skipped");
    }

    #[test]
    fn a_program_that_crashes_counts_as_failed() {
        assert_eq!(Tally::default().ended(false), Tally::FAILED);
        assert_eq!(Tally::FAILED.ended(false), Tally::FAILED, "not twice");
        assert_eq!(Tally::PASSED.ended(true), Tally::PASSED);
    }
}
