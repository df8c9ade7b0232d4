//! What fuzzing asks of the parsers of this crate: records, names of files, and what the kernel tells of a directory. Each function takes any
//! bytes, and panics where a promise is broken; `fuzz` has the list.

use bellwether_backend::fuzz::{judge, whole};
use bellwether_core::{ElectionName, Incarnation};

#[cfg(target_os = "linux")]
use rustix::fs::inotify::ReadFlags;

#[cfg(target_os = "linux")]
use crate::FileNotice;
#[cfg(target_os = "linux")]
use crate::inotify::WatchedDirectory;
use crate::liveness::incarnation_of;
use crate::numbered::number;
use crate::value::{is_record, read_record};
use crate::{NUMBER_MAX, Value, directory, file_name};

/// What lies under the name of a record. Only what is certainly ours is ever removed.
pub fn file_record(bytes: &[u8]) {
    let json = whole(bytes);
    let read = read_record(&Value::Bytes(bytes.to_vec()));
    judge(&read.record, json.as_ref());
    if is_record(bytes) {
        assert!(!read.record.broken);
        assert!(json.is_none_or(|json| json["election"].is_string() && json["epoch"].is_u64()));
    }
}

/// Names of files: those of records and signs of life have one spelling each, and those of elections lead nowhere else.
pub fn file_names(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(number) = number(text) {
        assert!(number <= NUMBER_MAX && number.to_string() == text);
    }
    if let Some(incarnation) = incarnation_of(text) {
        assert!(text.starts_with(&Incarnation::to_string(&incarnation)));
    }
    if let Ok(name) = ElectionName::new(text) {
        let file = file_name(name.as_str());
        assert!(!file.is_empty() && file.len() <= 100 && !file.starts_with('.'), "{file}");
        assert!(
            file.is_ascii() && !file.contains(['/', '\0']) && !file.contains(char::is_uppercase),
            "{file}"
        );
    }
}

/// `file:DIR`.
pub fn file_url(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(path) = directory(text) {
        assert!(text.starts_with("file:") && path.is_absolute());
        assert!(!path.as_os_str().as_encoded_bytes().contains(&0));
    }
}

/// What the kernel tells of one directory: lines, each of a byte of flags and a name.
#[cfg(target_os = "linux")]
pub fn file_notices(bytes: &[u8]) {
    let elections = ["a", "b"].map(|name| ElectionName::new(name).expect("a letter is a name")).to_vec();
    let mut directory = WatchedDirectory { elections: elections.clone(), highest: 0 };
    for line in bytes.split(|byte| *byte == b'\n') {
        let Some((flags, name)) = line.split_first() else { continue };
        let Ok(name) = std::str::from_utf8(name) else { continue };
        // Those that tell of a name are among the lowest ten bits.
        let what = ReadFlags::from_bits_retain(u32::from(*flags) << 2);
        let notices = directory.notices(what, name);
        assert!(notices.is_empty() || notices.len() == elections.len(), "an election hears all or nothing");
        for notice in &notices {
            match notice {
                FileNotice::Record(_) => assert!(name.strip_suffix(".json").and_then(number).is_some()),
                FileNotice::Closed(_, incarnation) => {
                    assert!(what.contains(ReadFlags::CLOSE_WRITE), "alive until its file is closed");
                    assert_eq!(incarnation_of(name), Some(*incarnation));
                }
                FileNotice::Gone(_) | FileNotice::Anything => panic!("no name tells of {notice:?}"),
            }
        }
        assert!(directory.highest <= NUMBER_MAX);
    }
}
