//! What came of a series, as a line of a table.

use std::fmt;
use std::time::Duration;

use super::{Kind, Silence};

/// What came of a series.
#[derive(Debug)]
pub struct Silenced {
    pub(super) kind: Kind,
    pub(super) how: Silence,
    /// From the silence to the next leader.
    pub(super) took: Vec<Duration>,
    /// From the end of the old leader's belief to the next leader.
    pub(super) spare: Vec<Duration>,
    /// Runs in which two led at once, by any measure.
    pub(super) overlaps: usize,
    pub(super) complaints: Vec<String>,
    /// Runs in which the bound did not hold.
    pub(super) late: Vec<String>,
}

impl Silenced {
    pub(super) fn new(kind: Kind, how: Silence) -> Silenced {
        let (took, spare, complaints, late) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Silenced { kind, how, took, spare, overlaps: 0, complaints, late }
    }

    /// What must not have been on any machine, a sentence each.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// Successors that took longer than the bound, a sentence each: on a quiet machine there is none.
    pub fn late(&self) -> &[String] {
        &self.late
    }

    /// From the silence to the next leader: the middle and the most.
    pub fn took(&self) -> (Duration, Duration) {
        let mut took = self.took.clone();
        took.sort_unstable();
        (took[took.len() / 2], took[took.len() - 1])
    }

    /// Whether nothing is to be complained of, and the bound held every time.
    pub fn holds(&self) -> bool {
        self.complaints.is_empty() && self.late.is_empty()
    }

    /// The heading of what [`Silenced`] prints.
    pub fn heading() -> String {
        format!(
            "{:<14}{:>5}  {:<22}{:>5}{:>10}{:>13}{:>10}{:>14}{:>10}",
            "store",
            "nodes",
            "leader",
            "runs",
            "overlaps",
            "next, median",
            "longest",
            "after belief",
            "bound"
        )
    }
}

impl fmt::Display for Silenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |span: Duration| format!("{:.0} ms", span.as_secs_f64() * 1e3);
        let (median, longest) = self.took();
        let spare = self.spare.iter().min().copied().unwrap_or_default();
        write!(
            f,
            "{:<14}{:>5}  {:<22}{:>5}{:>10}{:>13}{:>10}{:>14}{:>10}",
            self.kind,
            self.kind.nodes(),
            self.how,
            self.took.len(),
            self.overlaps,
            ms(median),
            ms(longest),
            ms(spare),
            ms(self.kind.bound(self.how))
        )
    }
}
