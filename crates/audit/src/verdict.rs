//! Reading lines, and the verdict on them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};
use std::time::Duration;

use crate::figures::Figures;
use crate::journal::{Journal, Told};
use crate::leadership::overlap;
use crate::{Doubt, Leadership, Line, Owner, Violation};

/// Lines longer than this are no event lines; they are passed over, and not kept.
const LINE_MAX_BYTES: usize = 64 * 1024;

/// Lines that are to be judged.
#[derive(Debug, Default)]
pub struct Audit {
    journals: BTreeMap<(String, String), (Owner, Journal)>,
    lines: u64,
    skipped: u64,
}

/// What became of it, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Nothing is wrong, and nothing is in doubt.
    Clean,
    /// Nothing is certainly wrong, and the lines do not tell whether all is well.
    Unknown,
    /// A promise was broken.
    Violated,
}

impl Judgement {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Judgement::Clean => "clean",
            Judgement::Unknown => "unknown",
            Judgement::Violated => "violated",
        }
    }
}

/// The verdict.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Every leadership, by election and begin.
    pub leaderships: Vec<Leadership>,
    /// What must never happen, and did.
    pub violations: Vec<Violation>,
    /// What the lines cannot tell.
    pub doubts: Vec<Doubt>,
    /// How much of everything there was.
    pub figures: Figures,
}

impl Audit {
    /// Nothing is read yet.
    pub fn new() -> Audit {
        Audit::default()
    }

    /// Reads all lines, and skips those that are no event lines.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn read(&mut self, mut from: impl BufRead) -> io::Result<()> {
        let mut bytes = Vec::new();
        while next_line(&mut from, &mut bytes)? {
            match std::str::from_utf8(&bytes).ok().and_then(Line::parse) {
                Some(line) => self.add(line),
                None if bytes.trim_ascii().is_empty() => {}
                None => self.skipped += 1,
            }
        }
        Ok(())
    }

    /// Adds one line.
    pub fn add(&mut self, line: Line) {
        self.lines += 1;
        let key = (line.election.clone(), line.incarnation.clone());
        let (owner, journal) = self.journals.entry(key).or_insert_with(|| {
            let owner =
                Owner { id: line.id.clone(), incarnation: line.incarnation.clone(), boot_id: String::new() };
            (owner, Journal::default())
        });
        if let Some(boot_id) = &line.boot_id {
            owner.boot_id.clone_from(boot_id);
        }
        journal.add(line);
    }

    /// The verdict on all that was read.
    pub fn verdict(self) -> Verdict {
        let mut verdict = Verdict::default();
        let candidates: BTreeSet<&String> =
            self.journals.keys().map(|(_, incarnation)| incarnation).collect();
        verdict.figures.candidates = candidates.len();
        (verdict.figures.lines, verdict.figures.skipped) = (self.lines, self.skipped);
        let mut elections: BTreeMap<String, Vec<Leadership>> = BTreeMap::new();
        for ((election, _), (owner, journal)) in self.journals {
            let Told { leaderships, violations, doubts } = journal.told(&election, &owner);
            verdict.violations.extend(violations);
            verdict.doubts.extend(doubts);
            elections.entry(election).or_default().extend(leaderships);
        }
        verdict.figures.elections = elections.len();
        for mut all in elections.into_values() {
            all.sort_by_key(|led| (led.from, led.epoch));
            one_owner_each(&all, &mut verdict);
            let boots: BTreeSet<String> = all.iter().map(|led| led.owner.boot_id.clone()).collect();
            for boot in &boots {
                let here: Vec<&Leadership> = all.iter().filter(|led| led.owner.boot_id == *boot).collect();
                epochs_rise(&here, &mut verdict);
                one_at_a_time(&here, &mut verdict);
                verdict.figures.gaps.note(&here);
            }
            verdict.figures.boots.extend(boots);
            verdict.leaderships.extend(all);
        }
        verdict.figures.leaderships = verdict.leaderships.len();
        verdict
    }
}

impl Verdict {
    /// The verdict in a word. Lines that tell of no leadership prove nothing.
    pub fn judgement(&self) -> Judgement {
        match (self.violations.is_empty(), self.doubts.is_empty() && !self.leaderships.is_empty()) {
            (false, _) => Judgement::Violated,
            (true, false) => Judgement::Unknown,
            (true, true) => Judgement::Clean,
        }
    }
}

/// Reads one line of bounded length; false at the end. One that is too long is read to its end and comes out empty of meaning.
fn next_line(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut some = false;
    loop {
        let available = from.fill_buf()?;
        if available.is_empty() {
            return Ok(some);
        }
        some = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |end| end + 1);
        let room = (LINE_MAX_BYTES + 1).saturating_sub(line.len()).min(taken);
        line.extend_from_slice(&available[..room]);
        from.consume(taken);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// Epochs of different machines too: each has one owner.
fn one_owner_each(all: &[Leadership], verdict: &mut Verdict) {
    let mut owners: BTreeMap<u64, &Leadership> = BTreeMap::new();
    for led in all {
        let Some(epoch) = led.epoch else { continue };
        let first = *owners.entry(epoch).or_insert(led);
        if first.owner != led.owner {
            verdict.violations.push(Violation::TwoOwners { first: first.clone(), second: led.clone() });
        }
    }
}

fn epochs_rise(of_one_clock: &[&Leadership], verdict: &mut Verdict) {
    let mut highest: Option<&Leadership> = None;
    for led in of_one_clock.iter().filter(|led| led.epoch.is_some()) {
        match highest {
            // Two owners of one epoch are told already.
            Some(before)
                if led.epoch < before.epoch || (led.epoch == before.epoch && led.owner == before.owner) =>
            {
                let (before, after) = (before.clone(), (*led).clone());
                verdict.violations.push(Violation::EpochFell { before, after });
            }
            _ => highest = Some(led),
        }
    }
}

/// In the order of their begins. Only those that may not have ended are looked at again, so a long history is judged in one pass.
fn one_at_a_time(of_one_clock: &[&Leadership], verdict: &mut Verdict) {
    let mut open: Vec<&Leadership> = Vec::new();
    for second in of_one_clock {
        open.retain(|first| {
            if first.until.at_most <= second.from {
                return false;
            }
            // What a candidate does to itself is told by its own journal.
            if first.owner == second.owner {
                return true;
            }
            let (at_least, _) = overlap(first, second);
            if at_least > 0 {
                let (first, second) = ((*first).clone(), (*second).clone());
                let span = Duration::from_nanos(at_least);
                verdict.violations.push(Violation::Overlap { first, second, span });
                return true;
            }
            let (first, second) = ((*first).clone(), (*second).clone());
            verdict.doubts.push(if second.from < first.deadline {
                Doubt::KilledOrBeside { first, second }
            } else {
                Doubt::UnknownAfter { first, second }
            });
            // One doubt about each is enough.
            false
        });
        open.push(second);
    }
}
