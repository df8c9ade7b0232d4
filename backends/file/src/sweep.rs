//! Clearing away what nobody needs any more: old numbers, and temporary files that a crash left behind.
//!
//! Owns removal of records. Never takes the highest number, nor the seven below it. Goes upwards and ends at the first
//! failure, which the argument in [`crate::numbered`] rests on. A record that is not the file that was listed stays:
//! after a deletion by hand a sweeper that slept would otherwise remove new records under old numbers.
//! Failures are nobody's error: the next write sweeps again.

use std::collections::BTreeMap;

use crate::directory::{Directory, Identity, TEMPORARY, is_regular, unique_name};

/// How many records stay, so that no listing finds an empty directory while numbers move on.
pub(crate) const KEPT: usize = 8;
/// A writer needs milliseconds; one that slept longer finds its temporary file gone, and tries again.
const FORGOTTEN_AFTER_NS: i128 = 10 * 60 * 1_000_000_000;

/// `newest` was written just now: by its time the age of other files is judged, on the file system's own clock.
pub(crate) fn records(
    dir: &Directory,
    number_of: impl Fn(&str) -> Option<u64>,
    name_of: impl Fn(u64) -> String,
    newest: Identity,
) {
    let Ok(names) = dir.names() else { return };
    for name in names.iter().filter(|name| name.starts_with(TEMPORARY)) {
        let forgotten = |file: Identity| newest.modified_ns() - file.modified_ns() > FORGOTTEN_AFTER_NS;
        if let Ok(Some(file)) = dir.identity(name)
            && forgotten(file)
        {
            let _ = dir.remove(name);
        }
    }
    let mut old: BTreeMap<u64, Identity> = BTreeMap::new();
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
    numbers.sort_unstable();
    numbers.truncate(numbers.len().saturating_sub(KEPT));
    for number in numbers {
        match dir.identity(&name_of(number)) {
            Ok(Some(file)) => drop(old.insert(number, file)),
            Ok(None) => {}
            Err(_) => return,
        }
    }
    for (number, file) in old {
        if !remove(dir, &name_of(number), file) {
            return;
        }
    }
}

/// Whether the name is free now.
fn remove(dir: &Directory, name: &str, expected: Identity) -> bool {
    match dir.stat(name) {
        Ok(None) => true,
        Ok(Some(stat)) if Identity::of(&stat) != expected => false,
        Ok(Some(stat)) if is_regular(&stat) => dir.remove(name).is_ok(),
        // Not ours: out of the way, but not lost.
        Ok(Some(_)) => dir.rename(name, &format!("foreign-{name}{}", unique_name())).is_ok(),
        Err(_) => false,
    }
}
