//! History, cooldowns and create-once notes: numbered files, each compare-and-set by itself.
//!
//! Create-once notes lie in `DIR/.once/`, apart from the elections' own directories, and nothing here removes one: only the number 1 of
//! each is ever written.
//!
//! History and cooldowns lie beside the lease. Best effort, as their readers take them: a note's version is its number alone, so notes deleted by hand and
//! written anew can be taken for what they were.

use std::path::Path;

use bellwether_backend::{FoundNote, Note, Write};
use bellwether_core::{ElectionName, StoreError};

use crate::names::file_name;
use crate::numbered::{Numbered, number};
use crate::prepare::prepare;
use crate::value::{Ours, Value};

const HISTORY: &str = "history.";
const COOLDOWN: &str = "cooldown.";

/// Hidden, so that it is no election's name.
pub(crate) const ONCE: &str = ".once";

fn numbered(root: &Path, on: &ElectionName, note: &Note) -> Numbered {
    let name = file_name(on.as_str());
    let dir = root.join(&name);
    match note {
        Note::History => Numbered::new(dir, HISTORY, is_history),
        Note::Cooldown(id) => {
            Numbered::new(dir, format!("{COOLDOWN}{}.", file_name(id.as_str())), is_cooldown)
        }
        Note::Once => Numbered::new(root.join(ONCE), format!("{name}."), is_kept),
    }
}

/// Which notes a file of this name holds, if it has a name of ours: what tells whether its bytes are ours too.
pub(crate) fn ours(name: &str) -> Option<Ours> {
    let numbered = |name: &str| name.strip_suffix(".json").is_some_and(|digits| number(digits).is_some());
    if let Some(rest) = name.strip_prefix(HISTORY) {
        return numbered(rest).then_some(is_history as Ours);
    }
    let (_id, rest) = name.strip_prefix(COOLDOWN)?.strip_suffix(".json")?.rsplit_once('.')?;
    number(rest).map(|_| is_cooldown as Ours)
}

/// No sweep takes a create-once note.
fn is_kept(_: &[u8]) -> bool {
    false
}

/// As `bellwether_backend` prints past leaderships: a list, each with its epoch and beginning.
fn is_history(bytes: &[u8]) -> bool {
    let lines: Result<Vec<serde_json::Map<String, serde_json::Value>>, _> = serde_json::from_slice(bytes);
    lines.is_ok_and(|lines| lines.iter().all(|line| line.contains_key("epoch") && line.contains_key("since")))
}

/// As `bellwether_backend` prints an instant.
fn is_cooldown(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<i64>().is_ok())
}

pub(crate) fn read(root: &Path, on: &ElectionName, note: &Note) -> Result<FoundNote, StoreError> {
    let bytes = |value| match value {
        Value::Bytes(bytes) => bytes,
        // Something that makes no sense as a note, which is what its reader takes empty bytes for.
        Value::Huge | Value::NotAFile => Vec::new(),
    };
    Ok(numbered(root, on, note).load()?.map(|found| (bytes(found.value), found.version.number)))
}

pub(crate) fn write(
    root: &Path,
    on: &ElectionName,
    note: &Note,
    at: Option<u64>,
    bytes: &[u8],
) -> Result<Write<u64>, StoreError> {
    let notes = numbered(root, on, note);
    prepare(notes.dir())?;
    let found = notes.load()?.map(|found| found.version);
    if found.map(|version| version.number) != at {
        return Ok(Write::Conflict);
    }
    Ok(notes.write(found, bytes)?.map(|version| version.number))
}
