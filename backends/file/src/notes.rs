//! History and cooldowns: numbered files beside the lease, each compare-and-set by itself.
//!
//! Best effort, as their readers take them: a note's version is its number alone, so notes deleted by hand and
//! written anew can be taken for what they were.

use std::path::Path;

use bellwether_backend::{FoundNote, Note, Write};
use bellwether_core::Error;

use crate::cell::not_written;
use crate::names::file_name;
use crate::numbered::Numbered;
use crate::place::prepare;
use crate::value::{self, Value};

fn numbered(dir: &Path, note: &Note) -> Numbered {
    match note {
        Note::History => Numbered::new(dir, "history."),
        Note::Cooldown(id) => Numbered::new(dir, format!("cooldown.{}.", file_name(id.as_str()))),
    }
}

pub(crate) fn read(dir: &Path, note: &Note) -> Result<FoundNote, Error> {
    let bytes = |value| match value {
        Value::Bytes(bytes) => bytes,
        // Something that makes no sense as a note, which is what its reader takes empty bytes for.
        Value::Huge | Value::NotAFile => Vec::new(),
    };
    Ok(numbered(dir, note).load()?.map(|found| (bytes(found.value), found.version.number)))
}

pub(crate) fn write(dir: &Path, note: &Note, at: Option<u64>, bytes: &[u8]) -> Write<u64> {
    match replace(dir, note, at, bytes) {
        Ok(value::Write::Done(version)) => Write::Done(version.number),
        Ok(value::Write::Conflict) => Write::Conflict,
        Ok(value::Write::Unknown(error)) => Write::Unknown(error),
        Err(error) => not_written(error),
    }
}

fn replace(dir: &Path, note: &Note, at: Option<u64>, bytes: &[u8]) -> Result<value::Write, Error> {
    prepare(dir)?;
    let notes = numbered(dir, note);
    let found = notes.load()?.map(|found| found.version);
    if found.map(|version| version.number) != at {
        return Ok(value::Write::Conflict);
    }
    notes.write(found, bytes)
}
