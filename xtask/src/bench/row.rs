//! One row of a benchmark, as `benches/src/rows.rs` writes it.

use std::time::Duration;

use serde_json::Value;

use crate::Problem;

/// What was measured, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) note: String,
    pub(crate) said: Said,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    /// A figure as the benchmark printed it.
    Text(String),
    /// Ours as a number, with what it is compared with.
    Figures(Figures),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) store: String,
    pub(crate) unit: Unit,
    pub(crate) more_is_better: bool,
    pub(crate) ours: f64,
    /// How ours was set, where that is not plain.
    pub(crate) set: String,
    pub(crate) raw: Option<f64>,
    pub(crate) peer: Option<Peer>,
    pub(crate) bound: Option<f64>,
    pub(crate) at: Option<At>,
    /// Of how many, of ours and of theirs, if these are medians.
    pub(crate) medians: Option<(u64, u64)>,
    /// Why ours is behind, where it is.
    pub(crate) cause: String,
}

/// Another make.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Peer {
    /// With its version, and how it was set.
    pub(crate) name: String,
    pub(crate) theirs: f64,
    /// How many times better ours is: above one, ours is ahead.
    pub(crate) ratio: f64,
}

/// What the figure grows with, and how many of them there were.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct At {
    /// `followers` or `elections`.
    pub(crate) axis: String,
    pub(crate) count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    PerSecond,
    Bytes,
    Cores,
    Count,
}

impl Row {
    pub(crate) fn parse(json: &Value) -> Result<Row, Problem> {
        let text = |field: &str| json[field].as_str().map(str::to_owned);
        let what = text("what").ok_or_else(|| format!("a row says not what it is of: {json}"))?;
        let said = match text("said") {
            Some(said) => Said::Text(said),
            None => Said::Figures(Figures::parse(json).map_err(|field| format!("no `{field}` in {json}"))?),
        };
        Ok(Row { what: what.trim().to_owned(), note: text("note").unwrap_or_default(), said })
    }
}

impl Figures {
    /// The error is the field that is missing.
    fn parse(json: &Value) -> Result<Figures, &'static str> {
        let text = |field: &'static str| json[field].as_str().ok_or(field);
        let number = |field: &str| json[field].as_f64();
        let peer = match json["peer"].as_str() {
            None => None,
            Some(name) => Some(Peer {
                name: name.to_owned(),
                theirs: number("theirs").ok_or("theirs")?,
                // JSON has no infinity: ours took nothing.
                ratio: number("ratio").unwrap_or(f64::INFINITY),
            }),
        };
        let at = match json["axis"].as_str() {
            None => None,
            Some(axis) => Some(At { axis: axis.to_owned(), count: json["count"].as_u64().ok_or("count")? }),
        };
        Ok(Figures {
            store: text("store")?.to_owned(),
            unit: Unit::of(text("unit")?).ok_or("unit")?,
            more_is_better: text("better")? == "more",
            ours: number("ours").ok_or("ours")?,
            set: json["set"].as_str().unwrap_or_default().to_owned(),
            raw: number("raw"),
            peer,
            bound: number("bound"),
            at,
            medians: json["medians"][0].as_u64().zip(json["medians"][1].as_u64()),
            cause: json["cause"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// Whether the bound was kept, if there is one.
    pub(crate) fn is_kept(&self) -> Option<bool> {
        let kept = |bound| if self.more_is_better { self.ours >= bound } else { self.ours <= bound };
        self.bound.map(kept)
    }
}

impl Unit {
    fn of(name: &str) -> Option<Unit> {
        Some(match name {
            "s" => Unit::Seconds,
            "/s" => Unit::PerSecond,
            "bytes" => Unit::Bytes,
            "cores" => Unit::Cores,
            "" => Unit::Count,
            _ => return None,
        })
    }

    /// A figure as people read it.
    pub(crate) fn text(self, figure: f64) -> String {
        match self {
            Unit::Seconds => spaced(&format!("{:.3?}", Duration::from_secs_f64(figure.max(0.0)))),
            Unit::PerSecond => format!("{} /s", significant(figure)),
            Unit::Bytes => format!("{:.1} MiB", figure / 1_048_576.0),
            Unit::Cores => format!("{} % of a core", significant(figure * 100.0)),
            Unit::Count => format!("{figure:.0}"),
        }
    }
}

/// `1.234ms` as `1.23 ms`.
fn spaced(debugged: &str) -> String {
    let at = debugged.find(|c: char| c.is_alphabetic()).unwrap_or(debugged.len());
    let (number, unit) = debugged.split_at(at);
    format!("{} {unit}", number.parse().map_or_else(|_| number.to_owned(), significant))
}

/// Three digits that count, which is more than any of these figures has twice in a row.
pub(crate) fn significant(figure: f64) -> String {
    let digits = match figure.abs() {
        0.0 => 0,
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{figure:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_of_both_kinds_are_read() {
        let said = Row::parse(&json!({ "what": "  memory", "said": "3 MiB", "note": "at most 5" })).unwrap();
        assert_eq!((said.what.as_str(), said.said), ("memory", Said::Text("3 MiB".to_owned())));
        let row = json!({
            "what": "handover", "store": "nats", "unit": "s", "better": "less", "ours": 0.002, "raw": 0.001,
            "peer": "another", "theirs": 0.02, "ratio": 10.0, "bound": 0.001, "axis": "followers", "count": 10,
            "cause": "", "note": "",
        });
        let Said::Figures(figures) = Row::parse(&row).unwrap().said else { panic!("figures") };
        assert_eq!(figures.peer.as_ref().map(|peer| peer.ratio), Some(10.0));
        assert_eq!(figures.at.as_ref().map(|at| at.count), Some(10));
        assert_eq!(figures.is_kept(), Some(false));
    }

    #[test]
    fn a_row_that_lacks_a_field_is_refused_by_its_name() {
        let row = json!({ "what": "handover", "store": "nats", "unit": "s", "better": "less" });
        assert!(Row::parse(&row).unwrap_err().starts_with("no `ours`"));
        let peer =
            json!({ "what": "a", "store": "b", "unit": "s", "better": "less", "ours": 1, "peer": "c" });
        assert!(Row::parse(&peer).unwrap_err().starts_with("no `theirs`"));
    }

    #[test]
    fn ours_may_take_nothing_which_has_no_ratio_in_json() {
        let mut row = json!({ "what": "a", "store": "b", "unit": "", "better": "less", "ours": 0 });
        for (field, value) in [("peer", json!("c")), ("theirs", json!(9)), ("ratio", Value::Null)] {
            row[field] = value;
        }
        let Said::Figures(figures) = Row::parse(&row).unwrap().said else { panic!("figures") };
        assert_eq!(figures.peer.unwrap().ratio, f64::INFINITY);
    }

    #[test]
    fn figures_have_three_digits_and_their_unit() {
        assert_eq!(Unit::Seconds.text(0.001_234_5), "1.23 ms");
        assert_eq!(Unit::Seconds.text(15.0), "15.0 s");
        assert_eq!(Unit::Seconds.text(0.000_000_033), "33.0 ns");
        assert_eq!(Unit::PerSecond.text(0.333_3), "0.333 /s");
        assert_eq!(Unit::Bytes.text(1_572_864.0), "1.5 MiB");
        assert_eq!(Unit::Cores.text(0.25), "25.0 % of a core");
    }
}
