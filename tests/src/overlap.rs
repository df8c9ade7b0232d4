//! The judge: did two candidates lead at once?
//!
//! It goes by what the candidates said, on the one clock that they share. A leadership begins with `acquired` or
//! `resumed`. It ends with the first of: the candidate leaving the state `leader`, the deadline it names when it says
//! so late, or the process being killed.

use std::collections::BTreeMap;

use bellwether_core::Boot;

use crate::{Candidate, EventLine};

/// Two leaderships at once.
#[derive(Debug)]
pub struct Overlap {
    /// The earlier one: who and which epoch.
    pub first: (String, u64),
    /// The later one.
    pub second: (String, u64),
    /// For how long, in nanoseconds.
    pub nanos: u64,
}

struct Led {
    who: String,
    epoch: u64,
    from: Boot,
    until: Boot,
}

/// Every pair of leaderships that overlapped, by any of these candidates.
pub fn overlaps<'a>(candidates: impl IntoIterator<Item = &'a Candidate>) -> Vec<Overlap> {
    let mut all = Vec::new();
    for candidate in candidates {
        all.extend(leaderships(&candidate.said, candidate.killed));
    }
    all.sort_by_key(|led| led.from);
    let mut found = Vec::new();
    for (at, first) in all.iter().enumerate() {
        for second in &all[at + 1..] {
            if second.from < first.until {
                let nanos = first.until.min(second.until).since(second.from).as_nanos() as u64;
                let name = |led: &Led| (led.who.clone(), led.epoch);
                found.push(Overlap { first: name(first), second: name(second), nanos });
            }
        }
    }
    found
}

fn leaderships(said: &[EventLine], killed: Option<Boot>) -> Vec<Led> {
    let killed = killed.unwrap_or(Boot::FOREVER);
    let mut open: BTreeMap<u64, Led> = BTreeMap::new();
    let mut done = Vec::new();
    for line in said {
        match (line.event(), line.epoch()) {
            ("acquired" | "resumed", Some(epoch)) => {
                let who = line.text("incarnation").unwrap_or_default().to_owned();
                open.insert(epoch, Led { who, epoch, from: line.boot(), until: killed });
            }
            ("state_changed", _) if line.text("from") == Some("leader") => {
                for led in open.values_mut() {
                    led.until = led.until.min(line.boot());
                }
            }
            ("released" | "lost" | "suspended", Some(epoch)) => {
                if let Some(mut led) = open.remove(&epoch) {
                    let deadline = line.instant("deadline_boot_ns").unwrap_or(Boot::FOREVER);
                    led.until = led.until.min(line.boot()).min(deadline);
                    done.push(led);
                }
            }
            _ => {}
        }
    }
    done.extend(open.into_values());
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &[(&str, u64, u64)]) -> Vec<Led> {
        let line = |(event, epoch, at): &(&str, u64, u64)| {
            let text = format!(r#"{{"event":"{event}","epoch":{epoch},"boot_ns":{at},"incarnation":"x"}}"#);
            EventLine::parse(&text).expect("a line")
        };
        leaderships(&lines.iter().map(line).collect::<Vec<_>>(), None)
    }

    #[test]
    fn a_leadership_lasts_from_acquired_to_lost() {
        let all = said(&[("acquired", 1, 10), ("lost", 1, 20), ("acquired", 3, 40)]);
        let spans: Vec<_> = all.iter().map(|led| (led.from.as_nanos(), led.until.as_nanos())).collect();
        assert_eq!(spans, [(10, 20), (40, u64::MAX)]);
    }
}
