//! One line of a log, as far as the verdict needs it.

use bellwether_core::Boot;
use serde_json::Value;

/// An event of one candidate in one election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When, on the boot-time clock of the candidate's machine.
    pub at: Boot,
    /// The election.
    pub election: String,
    /// The candidate's id.
    pub id: String,
    /// Which start of it.
    pub incarnation: String,
    /// The leadership that it is about.
    pub epoch: Option<u64>,
    /// The boot of the machine that the clock counts from, where the line says so.
    pub boot_id: Option<String>,
    /// What happened.
    pub what: What,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A leadership began.
    Began {
        /// It ends then, unless renewed.
        deadline: Option<Boot>,
    },
    /// It was renewed.
    Renewed {
        /// It ends then, unless renewed again.
        deadline: Boot,
    },
    /// The candidate left the state `leader`: whatever it held is over.
    LeftLeader,
    /// A leadership ended.
    Ended {
        /// The latest instant at which it ended, where that was before the line.
        deadline: Option<Boot>,
        /// Whether the leader gave it up.
        is_release: bool,
    },
    /// The process was killed. Whoever killed it says so.
    Killed,
    /// Lines are missing here.
    Missed,
    /// Anything else: a sign of life.
    Other,
}

impl Line {
    /// Reads a line; `None` if it is no event line.
    pub fn parse(text: &str) -> Option<Line> {
        let fields: Value = serde_json::from_str(text).ok()?;
        let text = |name: &str| fields.get(name)?.as_str().map(str::to_owned);
        let instant = |name: &str| fields.get(name)?.as_u64().map(Boot::from_nanos);
        let deadline = instant("deadline_boot_ns");
        let epoch = fields.get("epoch").and_then(Value::as_u64);
        let what = match (fields.get("event")?.as_str()?, epoch) {
            ("acquired" | "resumed", Some(_)) => What::Began { deadline },
            ("renewed", Some(_)) => What::Renewed { deadline: deadline? },
            ("released", Some(_)) => What::Ended { deadline, is_release: true },
            ("lost" | "suspended", Some(_)) => What::Ended { deadline, is_release: false },
            ("state_changed", _) if fields.get("from").and_then(Value::as_str) == Some("leader") => {
                What::LeftLeader
            }
            ("killed", _) => What::Killed,
            ("missed", _) => What::Missed,
            _ => What::Other,
        };
        Some(Line {
            at: instant("boot_ns")?,
            election: text("election")?,
            id: text("id").unwrap_or_default(),
            incarnation: text("incarnation")?,
            epoch,
            boot_id: text("boot_id"),
            what,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_lines_are_read_and_others_are_not() {
        let text = r#"{"time":"x","boot_ns":5,"election":"e","id":"a","incarnation":"1f","event":"acquired","epoch":7,"deadline_boot_ns":9}"#;
        let line = Line::parse(text).unwrap();
        assert_eq!((line.at.as_nanos(), line.epoch, line.boot_id), (5, Some(7), None));
        assert_eq!(line.what, What::Began { deadline: Some(Boot::from_nanos(9)) });
        for other in
            ["", "hello", "{}", "[1]", r#"{"event":"acquired"}"#, r#"{"boot_ns":"x","event":"acquired"}"#]
        {
            assert_eq!(Line::parse(other), None, "{other}");
        }
    }

    #[test]
    fn an_unknown_event_is_a_sign_of_life() {
        let text =
            r#"{"boot_ns":5,"election":"e","incarnation":"1f","event":"newer_than_this","epoch":null}"#;
        assert_eq!(Line::parse(text).unwrap().what, What::Other);
    }
}
