//! The judge: did two candidates lead at once?
//!
//! It goes by what the candidates said, on the one clock that they share. A leadership begins with `acquired` or
//! `resumed`. It ends with the first of: the candidate leaving the state `leader`, the deadline it names when it says
//! so late, or the process being killed. Candidates of client-go say other words: they begin with `started_leading`, and
//! end with `work_ended`, when the context of their work is cancelled.

use bellwether_audit::{Audit, Line, What};
use bellwether_core::Boot;

use crate::{Candidate, EventLine};

const CLIENT_GO: &str = "client-go";

/// Two leaderships at once.
#[derive(Debug)]
pub struct Overlap {
    /// The one that began earlier.
    pub first: Led,
    /// The later one.
    pub second: Led,
    /// For how long, in nanoseconds.
    pub nanos: u64,
}

/// A leadership, by the word of whoever led.
#[derive(Clone, Debug)]
pub struct Led {
    /// The incarnation; `client-go` for a candidate of that make.
    pub who: String,
    /// Which one; `None` for client-go, which has no epochs.
    pub epoch: Option<u64>,
    /// Its begin.
    pub from: Boot,
    /// Its end, [`Boot::FOREVER`] if nothing was said of one.
    pub until: Boot,
}

impl Candidate {
    /// Every leadership that it has told of so far.
    pub fn leaderships(&self) -> Vec<Led> {
        leaderships(&self.said, self.killed)
    }
}

/// Every pair of leaderships that overlapped, by any of these candidates.
pub fn overlaps<'a>(candidates: impl IntoIterator<Item = &'a Candidate>) -> Vec<Overlap> {
    let mut all: Vec<Led> = candidates.into_iter().flat_map(Candidate::leaderships).collect();
    all.sort_by_key(|led| led.from);
    let mut found = Vec::new();
    for (at, first) in all.iter().enumerate() {
        for second in &all[at + 1..] {
            if second.from < first.until {
                let nanos = first.until.min(second.until).since(second.from).as_nanos() as u64;
                found.push(Overlap { first: first.clone(), second: second.clone(), nanos });
            }
        }
    }
    found
}

/// By the rules of `bellwether audit`. Whoever said nothing of an end, and was not killed, may lead for ever.
fn leaderships(said: &[EventLine], killed: Option<Boot>) -> Vec<Led> {
    let mut audit = Audit::new();
    let mut last = None;
    for line in said.iter().filter_map(audited) {
        last = Some(line.clone());
        audit.add(line);
    }
    if let (Some(line), Some(at)) = (last, killed) {
        audit.add(Line { at, what: What::Killed, ..line });
    }
    let all = audit.verdict().leaderships.into_iter();
    all.map(|led| Led {
        who: led.owner.incarnation,
        epoch: led.epoch,
        from: led.from,
        until: led.until.at_most,
    })
    .collect()
}

/// The line, and in the words of `bellwether` what a candidate of client-go says.
fn audited(said: &EventLine) -> Option<Line> {
    let what = match said.event() {
        "started_leading" => What::Began { deadline: None },
        "work_ended" => What::Ended { deadline: None, is_release: false },
        // What is not understood must not be judged as if nobody had led.
        "acquired" | "resumed" | "released" | "lost" | "suspended" => {
            let line = said.audited();
            assert!(line.is_some(), "the judge does not understand {said}");
            return line;
        }
        _ => return said.audited(),
    };
    let who = CLIENT_GO.to_owned();
    let (election, boot_id) = (String::new(), None);
    Some(Line { at: said.boot(), election, id: who.clone(), incarnation: who, epoch: None, boot_id, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &[(&str, u64, u64)]) -> Vec<Led> {
        let line = |(event, epoch, at): &(&str, u64, u64)| {
            let text = format!(
                r#"{{"event":"{event}","epoch":{epoch},"boot_ns":{at},"incarnation":"x","election":"e"}}"#
            );
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

    #[test]
    fn a_leadership_of_client_go_lasts_from_its_start_to_the_end_of_its_work() {
        let words =
            [("started_leading", 10), ("stopped_leading", 15), ("work_ended", 20), ("started_leading", 40)];
        let line = |(event, at): (&str, u64)| format!(r#"{{"event":"{event}","boot_ns":{at}}}"#);
        let said: Vec<_> = words.into_iter().filter_map(|word| EventLine::parse(&line(word))).collect();
        let all = leaderships(&said, Some(Boot::from_nanos(50)));
        let spans: Vec<_> = all.iter().map(|led| (led.from.as_nanos(), led.until.as_nanos())).collect();
        assert_eq!(spans, [(10, 20), (40, 50)]);
        assert!(all.iter().all(|led| led.epoch.is_none()));
    }
}
