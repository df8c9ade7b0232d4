//! Lines of results: printed for a person, and as rows of JSON for `cargo xtask bench`, which names the file to add them to.
//!
//! A row says what was measured and what came of it. One that compares also has the raw operation, ours and another make as numbers, from
//! which the ratios, the pages and the plots are made; nothing is computed twice.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::progress;

/// Names the file. Without it, results are only printed.
const FILE: &str = "BELLWETHER_BENCH_ROWS";

/// One figure of ours beside the raw operation, another make, or both, measured in the same run on the same server.
#[derive(Clone, Debug)]
pub struct Row {
    what: String,
    store: String,
    unit: Unit,
    better: Better,
    ours: f64,
    set: String,
    raw: Option<f64>,
    peer: Option<(String, f64)>,
    bound: Option<f64>,
    at: Option<(Axis, usize)>,
    medians: Option<(usize, usize)>,
    cause: String,
    note: String,
}

/// What the numbers of a row count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Times.
    Seconds,
    /// Requests, messages, writes.
    PerSecond,
    /// Memory.
    Bytes,
    /// Processor time for each second.
    Cores,
    /// Connections, requests.
    Count,
}

/// Which of two figures is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Times and costs.
    Less,
    /// Throughput.
    More,
}

/// What a figure grows with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Candidates that wait for one leader.
    Followers,
    /// Elections of one process.
    Elections,
}

impl Row {
    /// A time of ours.
    pub fn time(store: &str, what: impl Into<String>, ours: Duration) -> Row {
        Row::figure(store, what, Unit::Seconds, ours.as_secs_f64())
    }

    /// Another cost of ours.
    pub fn figure(store: &str, what: impl Into<String>, unit: Unit, ours: f64) -> Row {
        Row {
            what: what.into(),
            store: store.to_owned(),
            unit,
            better: Better::Less,
            ours,
            set: String::new(),
            raw: None,
            peer: None,
            bound: None,
            at: None,
            medians: None,
            cause: String::new(),
            note: String::new(),
        }
    }

    /// More of it is better.
    pub fn throughput(self) -> Row {
        Row { better: Better::More, ..self }
    }

    /// How ours was set, where that is not plain.
    pub fn set(self, set: impl Into<String>) -> Row {
        Row { set: set.into(), ..self }
    }

    /// The least that it can take: the operations of the store with nothing around them.
    pub fn raw(self, raw: Duration) -> Row {
        Row { raw: Some(raw.as_secs_f64()), ..self }
    }

    /// The same of another make, with its version and how it was set.
    pub fn peer(self, name: impl Into<String>, theirs: f64) -> Row {
        Row { peer: Some((name.into(), theirs)), ..self }
    }

    /// The most that ours may be, or the least if more is better.
    pub fn bound(self, bound: f64) -> Row {
        Row { bound: Some(bound), ..self }
    }

    /// Where on an axis it was measured.
    pub fn at(self, axis: Axis, count: usize) -> Row {
        Row { at: Some((axis, count)), ..self }
    }

    /// Both are medians: of so many of ours, and so many of the other make.
    pub fn medians(self, ours: usize, theirs: usize) -> Row {
        Row { medians: Some((ours, theirs)), ..self }
    }

    /// Why ours is behind, where it is.
    pub fn cause(self, cause: impl Into<String>) -> Row {
        Row { cause: cause.into(), ..self }
    }

    /// What a reader has to know, above all which guarantees are not equal.
    pub fn note(self, note: impl Into<String>) -> Row {
        Row { note: note.into(), ..self }
    }

    /// Prints it, and adds it to the rows.
    pub fn print(&self) {
        let text = |figure| self.unit.text(figure);
        let place = match self.at {
            None => String::new(),
            Some((Axis::Followers, count)) => format!(", {count} followers"),
            Some((Axis::Elections, count)) => format!(", {count} elections"),
        };
        let set = if self.set.is_empty() { String::new() } else { format!(" ({})", self.set) };
        let mut beside = vec![format!("ours{set} {}", text(self.ours))];
        beside.extend(self.raw.map(|raw| format!("raw {}", text(raw))));
        beside.extend(self.peer.as_ref().map(|(name, theirs)| format!("{name} {}", text(*theirs))));
        beside.extend(self.bound.map(|bound| format!("bound {}: {}", text(bound), self.verdict(bound))));
        beside.extend((!self.note.is_empty()).then(|| self.note.clone()));
        let got = match (&self.peer, self.raw) {
            (Some((_, theirs)), _) => format!("{:.2} times", self.ahead(*theirs)),
            (None, Some(raw)) => format!("{:.2} of raw", self.ours / raw),
            (None, None) => text(self.ours),
        };
        print(&format!("{}: {}{place}", self.store, self.what), &got, &beside.join(", "));
        add(&self.json());
    }

    /// How many times better ours is: above one, ours is ahead.
    fn ahead(&self, theirs: f64) -> f64 {
        match self.better {
            Better::Less => theirs / self.ours,
            Better::More => self.ours / theirs,
        }
    }

    fn verdict(&self, bound: f64) -> &'static str {
        let kept = if self.better == Better::Less { self.ours <= bound } else { self.ours >= bound };
        verdict(kept)
    }

    fn json(&self) -> Value {
        let axis = |axis| if axis == Axis::Followers { "followers" } else { "elections" };
        json!({
            "what": self.what,
            "store": self.store,
            "unit": self.unit.name(),
            "better": if self.better == Better::Less { "less" } else { "more" },
            "ours": self.ours,
            "set": self.set,
            "raw": self.raw,
            "peer": self.peer.as_ref().map(|(name, _)| name),
            "theirs": self.peer.as_ref().map(|(_, theirs)| theirs),
            "ratio": self.peer.as_ref().map(|(_, theirs)| self.ahead(*theirs)),
            "bound": self.bound,
            "axis": self.at.map(|(along, _)| axis(along)),
            "count": self.at.map(|(_, count)| count),
            "medians": self.medians.map(|(ours, theirs)| [ours, theirs]),
            "cause": self.cause,
            "note": self.note,
        })
    }
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::PerSecond => "/s",
            Unit::Bytes => "bytes",
            Unit::Cores => "cores",
            Unit::Count => "",
        }
    }

    fn text(self, figure: f64) -> String {
        match self {
            Unit::Seconds => format!("{:.2?}", Duration::from_secs_f64(figure)),
            Unit::PerSecond => format!("{figure:.2} /s"),
            Unit::Bytes => format!("{:.1} MiB", figure / 1_048_576.0),
            Unit::Cores => format!("{:.2} % of a core", figure * 100.0),
            Unit::Count => format!("{figure:.0}"),
        }
    }
}

/// A time with its limit, and whether it was kept.
pub fn judged(what: &str, took: Duration, limit: Duration) {
    report(what, &format!("{took:.2?}"), &format!("at most {limit:?}: {}", verdict(took <= limit)));
}

/// Another figure with its limit, and whether it was kept.
pub fn judged_figure(what: &str, got: f64, unit: &str, limit: f64) {
    report(what, &format!("{got:.2} {unit}"), &format!("at most {limit} {unit}: {}", verdict(got <= limit)));
}

/// One line of a result that is compared with nothing by number: what, how much, and what was asked for.
pub fn report(what: &str, got: &str, wanted: &str) {
    print(what, got, wanted);
    add(&json!({ "what": what, "said": got, "note": wanted }));
}

fn verdict(kept: bool) -> &'static str {
    if kept { "ok" } else { "MISSED" }
}

fn print(what: &str, got: &str, wanted: &str) {
    progress::clear();
    println!("{what:<58} {got:>16}   {wanted}");
}

fn add(row: &Value) {
    let Some(path) = std::env::var_os(FILE) else { return };
    let file = std::fs::File::options().append(true).create(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(format!("{row}\n").as_bytes()));
    written.unwrap_or_else(|error| panic!("{FILE} is {}: {error}", path.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_above_one_means_that_ours_is_ahead() {
        let took = Row::time("postgres", "handover", Duration::from_millis(2));
        assert_eq!(took.peer("another", 0.02).json()["ratio"], 10.0);
        let writes = Row::figure("raft", "writes", Unit::PerSecond, 2_000.0).throughput();
        assert_eq!(writes.peer("another", 1_000.0).json()["ratio"], 2.0);
    }

    #[test]
    fn what_was_not_measured_is_null() {
        let row = Row::time("nats", "acquire", Duration::from_millis(1)).json();
        for field in ["raw", "peer", "theirs", "ratio", "bound", "axis", "count"] {
            assert!(row[field].is_null(), "{field}: {row}");
        }
        let placed = Row::figure("nats", "memory", Unit::Bytes, 1.0).at(Axis::Elections, 10).json();
        assert_eq!((placed["axis"].as_str(), placed["count"].as_u64()), (Some("elections"), Some(10)));
    }
}
