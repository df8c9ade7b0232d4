//! Counts, and how long nobody led.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::Leadership;

/// How much of everything there was.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Event lines.
    pub lines: u64,
    /// Lines that are no event lines.
    pub skipped: u64,
    /// Elections.
    pub elections: usize,
    /// Starts of candidates.
    pub candidates: usize,
    /// Leaderships.
    pub leaderships: usize,
    /// Boots of machines, as far as lines name them.
    pub boots: BTreeSet<String>,
    /// How long nobody led.
    pub gaps: Gaps,
}

/// The spans between the end of one leadership and the begin of the next, of one clock.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    handovers: Vec<Duration>,
    failovers: Vec<Duration>,
}

/// The figures of many gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// How many.
    pub count: usize,
    /// The middle one.
    pub median: Duration,
    /// Of a hundred, all but one are no longer.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl Gap {
    /// Those of these spans, in any order; `None` if there are none.
    pub fn of(all: &[Duration]) -> Option<Gap> {
        let mut sorted = all.to_vec();
        sorted.sort_unstable();
        let at = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
        let max = *sorted.last()?;
        Some(Gap { count: sorted.len(), median: at(50), p99: at(99), max })
    }
}

impl Gaps {
    /// After a release.
    pub fn handovers(&self) -> Option<Gap> {
        Gap::of(&self.handovers)
    }

    /// After any other end.
    pub fn failovers(&self) -> Option<Gap> {
        Gap::of(&self.failovers)
    }

    /// Adds those between the leaderships of one election and one clock, in the order of their begins. What has no exact end has no gap after it.
    pub(crate) fn note(&mut self, all: &[&Leadership]) {
        for pair in all.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            if before.until.is_exact() && after.from >= before.until.at_most {
                let gaps = if before.is_released { &mut self.handovers } else { &mut self.failovers };
                gaps.push(after.from.since(before.until.at_most));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_the_hundredth_and_the_longest_of_many() {
        let ms = Duration::from_millis;
        let all: Vec<Duration> = (1..=200).rev().map(ms).collect();
        assert_eq!(Gap::of(&all), Some(Gap { count: 200, median: ms(100), p99: ms(198), max: ms(200) }));
        assert_eq!(Gap::of(&[ms(7)]), Some(Gap { count: 1, median: ms(7), p99: ms(7), max: ms(7) }));
        assert_eq!(Gap::of(&[]), None);
    }
}
