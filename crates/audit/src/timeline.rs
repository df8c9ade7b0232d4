//! Who led when, as text: a row for each candidate, a column for each part of the time.

use std::collections::BTreeMap;

use bellwether_core::Boot;

use crate::{Leadership, Verdict};

/// Columns of the time.
const WIDTH: usize = 72;
/// Rows of one election; more candidates than this are counted.
const ROWS_MAX: usize = 20;
/// Candidates' names are cut to this.
const NAME_MAX: usize = 24;

/// The leaderships of one election and one clock, with the time from the first begin to the last instant that is known.
pub(crate) struct Stretch<'a> {
    pub(crate) election: &'a str,
    pub(crate) boot_id: &'a str,
    pub(crate) from: Boot,
    pub(crate) to: Boot,
    /// By the candidate's id, in the order of their first leaderships.
    pub(crate) rows: Vec<(&'a str, Vec<&'a Leadership>)>,
}

impl Stretch<'_> {
    /// Where an instant lies, from 0 at the begin to 1 at the end.
    pub(crate) fn place(&self, at: Boot) -> f64 {
        let whole = self.to.since(self.from).as_nanos().max(1) as f64;
        (at.since(self.from).as_nanos() as f64 / whole).min(1.0)
    }
}

/// Every stretch of a verdict.
pub(crate) fn stretches(verdict: &Verdict) -> Vec<Stretch<'_>> {
    let mut by_clock: BTreeMap<(&str, &str), Vec<&Leadership>> = BTreeMap::new();
    for led in &verdict.leaderships {
        by_clock.entry((&led.election, &led.owner.boot_id)).or_default().push(led);
    }
    by_clock.into_iter().map(|((election, boot_id), all)| stretch(election, boot_id, &all)).collect()
}

fn stretch<'a>(election: &'a str, boot_id: &'a str, all: &[&'a Leadership]) -> Stretch<'a> {
    let known = |led: &&Leadership| match led.until.at_most {
        Boot::FOREVER => led.until.at_least,
        at_most => at_most,
    };
    let from = all.iter().map(|led| led.from).min().unwrap_or_default();
    let to = all.iter().map(known).max().unwrap_or_default();
    let mut rows: Vec<(&str, Vec<&Leadership>)> = Vec::new();
    for &led in all {
        match rows.iter_mut().find(|(id, _)| *id == led.owner.id) {
            Some((_, row)) => row.push(led),
            None => rows.push((&led.owner.id, vec![led])),
        }
    }
    Stretch { election, boot_id, from, to, rows }
}

/// The timeline of every election: `█` where a candidate led, `▒` where it may have led.
pub fn timeline(verdict: &Verdict) -> Vec<String> {
    let mut lines = Vec::new();
    for stretch in stretches(verdict) {
        let span = stretch.to.since(stretch.from).as_secs_f64();
        let on = if stretch.boot_id.is_empty() {
            String::new()
        } else {
            format!(", boot {}", stretch.boot_id.get(..8).unwrap_or(stretch.boot_id))
        };
        lines.push(format!("{}: {span:.3} s{on}", stretch.election));
        for (id, led) in stretch.rows.iter().take(ROWS_MAX) {
            let name: String = id.chars().take(NAME_MAX).collect();
            lines.push(format!("  {name:NAME_MAX$} │{}│ {}", bar(&stretch, led), led.len()));
        }
        if stretch.rows.len() > ROWS_MAX {
            lines.push(format!("  and {} more candidates", stretch.rows.len() - ROWS_MAX));
        }
    }
    lines
}

fn bar(stretch: &Stretch<'_>, row: &[&Leadership]) -> String {
    let mut cells = [' '; WIDTH];
    let column = |at: Boot| ((stretch.place(at) * WIDTH as f64) as usize).min(WIDTH - 1);
    for led in row {
        let most = led.until.at_most.min(stretch.to);
        cells[column(led.from)..=column(most)]
            .iter_mut()
            .filter(|cell| **cell == ' ')
            .for_each(|cell| *cell = '▒');
        cells[column(led.from)..=column(led.until.at_least)].fill('█');
    }
    cells.iter().collect()
}
