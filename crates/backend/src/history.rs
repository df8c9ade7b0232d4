//! Past leaderships, as notes beside the lease.

use bellwether_core::{CandidateId, ElectionName, Epoch, Incarnation, StoreError, Wall};
use serde::{Deserialize, Serialize};

use crate::{Note, Register, Write};

/// How many past leaderships are kept.
pub const HISTORY_MAX: usize = 100;

/// How often a write that others overtook is tried again; history is best effort.
const TRIES: usize = 4;

/// Longest word for an end that is believed, in bytes: what somebody else wrote must not make the whole too large to be written.
const ENDED_MAX_BYTES: usize = 64;

/// One leadership that was, or still is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Its number.
    pub epoch: Epoch,
    /// Who led.
    pub id: CandidateId,
    /// Which start of it.
    pub incarnation: Option<Incarnation>,
    /// From when, by the leader's wall clock.
    pub since: Wall,
    /// Until when, by the leader's wall clock; `None` while it lasts, or when the leader could not tell any more.
    pub until: Option<Wall>,
    /// How it ended: `released`, or the reason of its loss.
    pub ended: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct HistoryLine {
    epoch: u64,
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incarnation: Option<String>,
    since: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
}

/// Lines that make no sense are left out: history is for people, and one bad line must not hide the others.
pub(crate) fn parse(bytes: &[u8]) -> Vec<Past> {
    let lines: Vec<serde_json::Value> = serde_json::from_slice(bytes).unwrap_or_default();
    let past = |value| {
        let line: HistoryLine = serde_json::from_value(value).ok()?;
        Some(Past {
            epoch: Epoch::new(line.epoch)?,
            id: CandidateId::new(line.id).ok()?,
            incarnation: line.incarnation.as_deref().and_then(Incarnation::parse),
            since: Wall::parse(&line.since)?,
            until: line.until.as_deref().and_then(Wall::parse),
            ended: line.ended.filter(|ended| ended.len() <= ENDED_MAX_BYTES),
        })
    };
    lines.into_iter().filter_map(past).collect()
}

pub(crate) fn print(all: &[Past]) -> Vec<u8> {
    let line = |past: &Past| HistoryLine {
        epoch: past.epoch.get(),
        id: past.id.to_string(),
        incarnation: past.incarnation.map(|incarnation| incarnation.to_string()),
        since: past.since.to_string(),
        until: past.until.map(|until| until.to_string()),
        ended: past.ended.clone(),
    };
    let lines: Vec<HistoryLine> = all.iter().map(line).collect();
    serde_json::to_vec(&lines).unwrap_or_default()
}

/// Adds a leadership, or completes the one with the same epoch.
pub(crate) async fn remember(
    register: &impl Register,
    on: &ElectionName,
    past: &Past,
) -> Result<(), StoreError> {
    for _ in 0..TRIES {
        let (mut all, at) = match register.read_note(on, &Note::History).await? {
            Some((bytes, version)) => (parse(&bytes), Some(version)),
            None => (Vec::new(), None),
        };
        // Beginning and end are written by two calls that may overtake each other: the end stays.
        if past.until.is_none() && all.iter().any(|other| other.epoch == past.epoch && other.until.is_some())
        {
            return Ok(());
        }
        all.retain(|other| other.epoch != past.epoch);
        let place = all.partition_point(|other| other.epoch < past.epoch);
        all.insert(place, past.clone());
        let surplus = all.len().saturating_sub(HISTORY_MAX);
        all.drain(..surplus);
        match register.write_note(on, &Note::History, at, &print(&all)).await {
            Write::Done(_) => return Ok(()),
            Write::Conflict => {}
            Write::Unknown(error) | Write::Refused(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_hides_no_other() {
        let good = r#"{"epoch":3,"id":"a","since":"2026-01-01T00:00:00Z"}"#;
        let bytes = format!(r#"[17, {{"epoch":1}}, {good}, null]"#);
        let all = parse(bytes.as_bytes());
        assert_eq!(all.len(), 1);
        assert_eq!(parse(&print(&all)), all);
        assert!(parse(b"not json").is_empty());
        let long = good.replace('}', &format!(r#","ended":"{}"}}"#, "x".repeat(1_000_000)));
        assert_eq!(parse(format!("[{long}]").as_bytes()), all, "what was never an end is none");
    }
}
