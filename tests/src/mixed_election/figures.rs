//! What came of a shared election, and whether that is as it should be.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_support::servers::kubernetes::Timing;

use super::{Fate, Make};
use crate::{Candidate, Led, Overlap, overlaps};

/// What came of it.
#[derive(Debug, Default)]
pub struct Figures {
    turns: BTreeMap<(Make, Fate), usize>,
    leaderships: BTreeMap<Make, usize>,
    /// That must not have been.
    overlaps: usize,
    /// For how long leaders of client-go went on beside a successor because they had been stopped or cut off.
    own_fault: Vec<Duration>,
    /// For how long a leader went on whose Lease another of client-go's had emptied, beside one that took it.
    emptied: Vec<Duration>,
    /// How often an epoch of ours was followed by a higher one, with client-go leading in between.
    risen_through_client_go: usize,
    complaints: Vec<String>,
}

impl Figures {
    /// What must not have been, a sentence each.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// How many leaderships candidates of this make had.
    pub fn leaderships(&self, make: Make) -> usize {
        self.leaderships.get(&make).copied().unwrap_or_default()
    }

    /// How often our epochs have risen with client-go leading in between.
    pub fn risen_through_client_go(&self) -> usize {
        self.risen_through_client_go
    }

    pub(super) fn count(&mut self, make: Make, fate: Fate) {
        *self.turns.entry((make, fate)).or_default() += 1;
    }

    pub(super) fn complain(&mut self, sentence: String) {
        self.complaints.push(sentence);
    }

    /// By the candidates' own words, when all of them are gone.
    pub(super) fn judge(&mut self, gone: &[Candidate], faults: &[Fault]) {
        for overlap in overlaps(gone) {
            let lasted = Duration::from_nanos(overlap.nanos);
            if faults.iter().any(|fault| fault.lasts_in(&overlap)) {
                self.own_fault.push(lasted);
            } else if faults.iter().any(|fault| fault.emptied(&overlap)) {
                self.emptied.push(lasted);
            } else {
                self.overlaps += 1;
                self.complaints.push(format!("two at once: {overlap:?}"));
            }
        }
        let mut all: Vec<Led> = gone.iter().flat_map(Candidate::leaderships).collect();
        all.sort_by_key(|led| led.from);
        let (mut highest, mut theirs_between) = (0, false);
        for led in &all {
            let Some(epoch) = led.epoch else {
                *self.leaderships.entry(Make::ClientGo).or_default() += 1;
                theirs_between = true;
                continue;
            };
            *self.leaderships.entry(Make::Ours).or_default() += 1;
            if epoch <= highest {
                self.complaints.push(format!("epoch {epoch} after {highest}"));
            }
            self.risen_through_client_go += usize::from(theirs_between && highest > 0 && epoch > highest);
            (highest, theirs_between) = (highest.max(epoch), false);
        }
    }
}

/// A leader of client-go that was stopped or cut off.
pub(super) struct Fault {
    /// When it fell silent.
    pub(super) from: Boot,
    /// When its work had ended.
    pub(super) until: Boot,
    pub(super) cut_off: bool,
}

/// In this time another candidate of client-go finds the Lease empty, and leads.
const TAKEN_WITHIN: Duration = Timing::SHORT.retry.saturating_mul(2);

impl Fault {
    /// Whether the earlier one is this leader.
    fn lasts_in(&self, overlap: &Overlap) -> bool {
        let first = &overlap.first;
        first.epoch.is_none() && (first.from..first.until).contains(&self.from)
    }

    /// Whether this leader may have emptied the Lease of the earlier one, its successor, for the later one to take. Ours do not
    /// take it from ours.
    fn emptied(&self, overlap: &Overlap) -> bool {
        let Overlap { first, second, .. } = overlap;
        let both_ours = first.epoch.is_some() && second.epoch.is_some();
        self.cut_off && !both_ours && self.from < first.from && second.from < self.until + TAKEN_WITHIN
    }
}

struct Spans<'a>(&'a [Duration]);

impl fmt::Display for Spans<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.iter().min(), self.0.iter().max()) {
            (Some(shortest), Some(longest)) => {
                write!(f, "{} times, {shortest:.0?} to {longest:.0?}", self.0.len())
            }
            _ => f.write_str("never"),
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<14}", "leader")?;
        Fate::ALL.iter().try_for_each(|fate| write!(f, "{fate:>10}"))?;
        writeln!(f, "{:>13}", "leaderships")?;
        for make in [Make::Ours, Make::ClientGo] {
            write!(f, "{make:<14}")?;
            for fate in Fate::ALL {
                write!(f, "{:>10}", self.turns.get(&(make, fate)).copied().unwrap_or_default())?;
            }
            writeln!(f, "{:>13}", self.leaderships(make))?;
        }
        let risen = self.risen_through_client_go;
        writeln!(
            f,
            "overlaps: {}; our epoch rose through client-go's leaderships {risen} times",
            self.overlaps
        )?;
        writeln!(f, "client-go's own fault:")?;
        writeln!(f, "  beside its successor when it was stopped or cut off: {}", Spans(&self.own_fault))?;
        write!(
            f,
            "  beside the next when another of client-go's had emptied its Lease: {}",
            Spans(&self.emptied)
        )
    }
}
