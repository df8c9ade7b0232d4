//! What is known of each election, and how it is shown.
//!
//! Pure: it is told what was seen and when, on this machine's boot-time clock. A renewal counts from when it was *seen* here,
//! because no other machine's clock is to be compared with ours.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether::{Boot, ElectionName};
use bellwether::{Seen, Wall};
use serde_json::{Value, json};

use crate::output;

pub(super) const HEADING: [&str; 7] = ["ELECTION", "LEADER", "EPOCH", "SINCE", "TTL", "RENEWED", "LIFE"];

/// All elections, in the order of their names.
#[derive(Default)]
pub(super) struct Rows(BTreeMap<ElectionName, Row>);

struct Row {
    seen: Seen,
    /// The first look at this leadership.
    first_seen: Boot,
    renewal_seen: Option<Boot>,
}

impl Rows {
    pub(super) fn names(&self) -> Vec<ElectionName> {
        self.0.keys().cloned().collect()
    }

    /// Takes in a look. True if it is news: another election, leader, epoch or life, and not merely a renewal.
    pub(super) fn saw(&mut self, on: &ElectionName, seen: Seen, now: Boot) -> bool {
        let Some(row) = self.0.get_mut(on) else {
            self.0.insert(on.clone(), Row { seen, first_seen: now, renewal_seen: None });
            return true;
        };
        let before = std::mem::replace(&mut row.seen, seen);
        let same = (&before.holder, before.epoch) == (&row.seen.holder, row.seen.epoch);
        if !same {
            // The claim that made it was seen just now, unless somebody released.
            row.first_seen = now;
            row.renewal_seen = row.seen.holder.is_some().then_some(now);
        } else if before.renewed != row.seen.renewed {
            row.renewal_seen = Some(now);
        }
        !same || before.proof != row.seen.proof
    }

    /// These are gone from the store; true if any was here.
    pub(super) fn forget(&mut self, gone: &[ElectionName]) -> bool {
        gone.iter().filter(|on| self.0.remove(*on).is_some()).count() > 0
    }

    /// When the next leader will have been silent for its ttl, unless it renews.
    pub(super) fn next_silence(&self, now: Boot) -> Option<Boot> {
        let held = self.0.values().filter(|row| row.seen.leader().is_some());
        held.filter_map(|row| row.seen.free_at).filter(|at| *at > now).min()
    }

    /// The elections whose leaders are silent. Time alone changes it, so nobody tells of it.
    pub(super) fn silent(&self, now: Boot) -> Vec<ElectionName> {
        let silent = self.0.iter().filter(|(_, row)| is_silent(row, now));
        silent.map(|(on, _)| on.clone()).collect()
    }

    /// Lines under [`HEADING`].
    pub(super) fn table(&self, now: Boot) -> Vec<String> {
        let rows: Vec<Vec<String>> = self.0.iter().map(|(on, row)| cells(on, row, now)).collect();
        output::table(&HEADING, &rows)
    }

    /// One object for machines.
    pub(super) fn json(&self, now: Boot, wall: Wall, error: Option<&str>) -> Value {
        let elections: Vec<Value> = self.0.iter().map(|(on, row)| object(on, row, now)).collect();
        json!({ "time": wall.to_string(), "boot_ns": now.as_nanos(), "elections": elections, "error": error })
    }
}

/// The last two columns are ours, the others those of `status`.
fn cells(on: &ElectionName, row: &Row, now: Boot) -> Vec<String> {
    let mut cells = output::record_row(on, &row.seen);
    cells.pop();
    cells.push(match (&row.seen.holder, row.renewal_seen) {
        (None, _) => "-".to_owned(),
        (Some(_), Some(at)) => age(now.since(at)),
        (Some(_), None) => format!("{}+", age(now.since(row.first_seen))),
    });
    cells.push(life(row, now).to_owned());
    cells
}

fn object(on: &ElectionName, row: &Row, now: Boot) -> Value {
    let mut object = bellwether::record_json(on, &row.seen);
    let held = row.seen.holder.is_some();
    let ms = |at: Boot| u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX);
    object["renewal_seen_ms_ago"] = json!(row.renewal_seen.filter(|_| held).map(ms));
    object["life"] = json!(life(row, now));
    object
}

/// A leader that let its ttl pass is silent, even if its process is there: it may be stopped.
fn life(row: &Row, now: Boot) -> &'static str {
    if is_silent(row, now) { "silent" } else { row.seen.proof.as_str() }
}

fn is_silent(row: &Row, now: Boot) -> bool {
    row.seen.leader().is_some() && row.seen.free_at.is_some_and(|at| at <= now)
}

/// Tenths of seconds are as much as anybody reads on a screen that is drawn every second.
fn age(span: Duration) -> String {
    if span < Duration::from_secs(60) {
        return format!("{:.1}s", span.as_secs_f64());
    }
    output::span(Duration::from_secs(span.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether::{CandidateId, Epoch};
    use bellwether::{Holder, Proof};

    fn at(seconds: u64) -> Boot {
        Boot::from_nanos(seconds * 1_000_000_000)
    }

    fn held(id: &str, epoch: u64, renewed: i64, free_at: u64) -> Seen {
        Seen {
            holder: Some(Holder { id: CandidateId::new(id).unwrap(), incarnation: None }),
            epoch: Epoch::new(epoch),
            proof: Proof::Alive,
            renewed: Some(Wall::from_unix_nanos(renewed)),
            free_at: Some(at(free_at)),
            ..Seen::nothing()
        }
    }

    #[test]
    fn a_renewal_is_no_news_and_counts_from_when_it_was_seen() {
        let (mut rows, job) = (Rows::default(), ElectionName::new("job").unwrap());
        assert!(rows.saw(&job, held("a", 1, 0, 15), at(0)));
        assert!(rows.table(at(3))[1].contains("3.0s+"), "{:?}", rows.table(at(3)));
        assert!(!rows.saw(&job, held("a", 1, 5, 20), at(5)));
        assert!(rows.table(at(6))[1].contains("1.0s "), "{:?}", rows.table(at(6)));
        assert!(rows.saw(&job, held("b", 2, 6, 21), at(6)));
        assert!(rows.table(at(6))[1].contains('b'));
    }

    #[test]
    fn a_leader_that_lets_its_ttl_pass_is_silent() {
        let (mut rows, job) = (Rows::default(), ElectionName::new("job").unwrap());
        rows.saw(&job, held("a", 1, 0, 15), at(0));
        assert_eq!(rows.next_silence(at(1)), Some(at(15)));
        assert!(rows.table(at(14))[1].ends_with("alive") && rows.silent(at(14)).is_empty());
        assert!(rows.table(at(15))[1].ends_with("silent"));
        assert_eq!(rows.silent(at(15)), [job]);
        assert_eq!(rows.next_silence(at(15)), None);
    }
}
