//! Clearing away what nobody needs any more: old records, and temporary files that a crash left behind.
//!
//! Owns removal of records. Removes only what Bellwether wrote: a file is read first, and one that is not a record of
//! ours stays where it is, whoever put it there. Never takes the highest number, nor the seven below it. Goes upwards and
//! ends at the first failure, which the argument in [`crate::numbered`] rests on. A record that is not the file that was
//! listed stays: after a deletion by hand a sweeper that slept would otherwise remove new records under old numbers.
//! Failures are nobody's error: the next write sweeps again.

use std::collections::BTreeMap;

use crate::directory::{Directory, FileIdentity, TEMPORARY};
use crate::numbered::Numbered;
use crate::value::Value;

/// How many records stay, so that no listing finds an empty directory while numbers move on.
pub(crate) const KEPT: usize = 8;
/// A writer needs milliseconds; one that slept longer finds its temporary file gone, and tries again.
const FORGOTTEN_AFTER_NS: i128 = 10 * 60 * 1_000_000_000;

/// `newest` was written just now: by its time the age of other files is judged, on the file system's own clock.
pub(crate) fn records(dir: &Directory, records: &Numbered, newest: FileIdentity) {
    let Ok(names) = dir.names() else { return };
    for name in names.iter().filter(|name| is_temporary(name)) {
        let forgotten = |file: FileIdentity| newest.modified_ns() - file.modified_ns() > FORGOTTEN_AFTER_NS;
        if let Ok(Some((file, Value::Bytes(bytes)))) = dir.read_up_to(name, records.max_bytes)
            && forgotten(file)
            && (bytes.is_empty() || (records.ours)(&bytes))
        {
            let _ = dir.remove(name);
        }
    }
    let mut old: BTreeMap<u64, FileIdentity> = BTreeMap::new();
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| records.number_of(name)).collect();
    numbers.sort_unstable();
    numbers.truncate(numbers.len().saturating_sub(KEPT));
    for number in numbers {
        match dir.identity(&records.name(number)) {
            Ok(Some(file)) => drop(old.insert(number, file)),
            Ok(None) => {}
            Err(_) => return,
        }
    }
    for (number, file) in old {
        if !remove(dir, records, &records.name(number), file) {
            return;
        }
    }
}

/// A name that [`crate::directory::unique_name`] draws.
pub(crate) fn is_temporary(name: &str) -> bool {
    let drawn = |rest: &str| rest.len() == 16 && rest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    name.strip_prefix(TEMPORARY).is_some_and(drawn)
}

/// Whether the sweep may go on: the name is free now, or taken by what is not ours and stays.
fn remove(dir: &Directory, records: &Numbered, name: &str, expected: FileIdentity) -> bool {
    match dir.read_up_to(name, records.max_bytes) {
        Ok(None) => true,
        Ok(Some((found, _))) if found != expected => false,
        Ok(Some((_, Value::Bytes(bytes)))) if (records.ours)(&bytes) => dir.remove(name).is_ok(),
        Ok(Some(_)) => true,
        Err(_) => false,
    }
}
