//! What a series measured.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Ending;
use crate::{Overlap, Process};

/// How long it took until the next leader, by way; and what must not have been.
#[derive(Debug, Default)]
pub struct Figures {
    rows: BTreeMap<Ending, Row>,
    two_at_once: usize,
    orphans: usize,
    late: usize,
    complaints: Vec<String>,
}

#[derive(Debug, Default)]
struct Row {
    took: Vec<Duration>,
    bound: Duration,
}

impl Figures {
    pub(super) fn note(&mut self, way: Ending, took: Duration, bound: Duration) {
        let row = self.rows.entry(way).or_default();
        row.took.push(took);
        row.bound = bound;
        if took > bound {
            self.late += 1;
            self.complaints.push(format!("{way}: {took:?} until the next leader, not {bound:?}"));
        }
    }

    /// By the witnesses' word.
    pub(super) fn two_at_once(&mut self, way: Ending, said: &str) {
        self.two_at_once += said.lines().count();
        self.complaints.extend(said.lines().map(|line| format!("{way}: two at once: {line}")));
    }

    pub(super) fn orphans(&mut self, way: Ending, found: &[Process]) {
        self.orphans += found.len();
        self.complaints.extend(found.iter().map(|orphan| format!("{way}: left behind: {orphan:?}")));
    }

    /// By the candidates' own word.
    pub(super) fn overlaps(&mut self, found: &[Overlap]) {
        self.two_at_once += found.len();
        self.complaints.extend(found.iter().map(|overlap| format!("{overlap:?}")));
    }

    pub(super) fn left(&mut self, found: &[Process]) {
        self.orphans += found.len();
        self.complaints.extend(found.iter().map(|process| format!("left at the end: {process:?}")));
    }

    /// What went wrong, a sentence each; empty if nothing did.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// Never two at once, and never an orphan, however long anything took.
    pub fn is_safe(&self) -> bool {
        self.two_at_once == 0 && self.orphans == 0
    }

    /// How many rounds there were.
    pub fn rounds(&self) -> usize {
        self.rows.values().map(|row| row.took.len()).sum()
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rounds, median, p99, most, bound) = ("rounds", "median", "p99", "max", "bound");
        writeln!(
            f,
            "{:<48}{rounds:>7}{median:>11}{p99:>11}{most:>11}{bound:>11}",
            "time to the next leader, ms"
        )?;
        for (way, row) in &self.rows {
            let mut took = row.took.clone();
            took.sort_unstable();
            let share = |share: f64| took[((took.len() - 1) as f64 * share).round() as usize];
            let ms = |duration: Duration| format!("{:.1}", duration.as_secs_f64() * 1_000.0);
            let (median, p99, most) = (ms(share(0.5)), ms(share(0.99)), ms(share(1.0)));
            let (way, rounds, bound) = (way.to_string(), took.len(), ms(row.bound));
            writeln!(f, "{way:<48}{rounds:>7}{median:>11}{p99:>11}{most:>11}{bound:>11}")?;
        }
        let (rounds, two, orphans, late) = (self.rounds(), self.two_at_once, self.orphans, self.late);
        writeln!(
            f,
            "{rounds} rounds: {two} times two at once, {orphans} orphans, {late} times past the bound"
        )
    }
}
