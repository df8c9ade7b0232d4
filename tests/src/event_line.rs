//! Event lines, as scripts read them.

use std::fmt;

use bellwether_audit::Line;
use bellwether_core::Boot;
use serde_json::Value;

/// One event line of one process.
#[derive(Clone, Debug)]
pub struct EventLine(Value);

impl fmt::Display for EventLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl EventLine {
    /// `None` if it is not an event line.
    pub fn parse(text: &str) -> Option<EventLine> {
        let value: Value = serde_json::from_str(text).ok()?;
        (value.get("event")?.is_string() && value.get("boot_ns")?.is_u64()).then_some(EventLine(value))
    }

    /// As the judge reads it. Witnesses that are clients do not know the name of their election.
    pub(crate) fn audited(&self) -> Option<Line> {
        let mut fields = self.0.clone();
        fields.as_object_mut()?.entry("election").or_insert_with(|| "".into());
        Line::parse(&fields.to_string())
    }

    /// The event's word.
    pub fn event(&self) -> &str {
        self.text("event").unwrap_or_default()
    }

    /// When, on the clock that all processes of this machine share.
    pub fn boot(&self) -> Boot {
        Boot::from_nanos(self.0["boot_ns"].as_u64().unwrap_or(0))
    }

    /// The leadership it is about.
    pub fn epoch(&self) -> Option<u64> {
        self.0["epoch"].as_u64()
    }

    /// A field that holds text.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.0[field].as_str()
    }

    /// A field that holds a number.
    pub fn number(&self, field: &str) -> Option<u64> {
        self.0[field].as_u64()
    }

    /// A field that holds an instant.
    pub fn instant(&self, field: &str) -> Option<Boot> {
        self.0[field].as_u64().map(Boot::from_nanos)
    }
}
