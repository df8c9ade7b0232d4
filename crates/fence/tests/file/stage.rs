//! Names for what every test here needs.

use std::path::Path;

use bellwether_core::{ElectionName, Epoch};
use bellwether_fence::file::FencedFile;
use bellwether_fence::{FenceError, Stamp};

pub(crate) fn election() -> ElectionName {
    ElectionName::new("reports").unwrap()
}

pub(crate) fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

pub(crate) fn stamp(number: u64) -> Option<Stamp> {
    Some(Stamp::new(election(), epoch(number)))
}

/// That of the election in this directory.
pub(crate) fn fenced(dir: impl AsRef<Path>) -> FencedFile {
    FencedFile::new(dir.as_ref(), election())
}

/// The content as text.
pub(crate) fn text(file: &FencedFile) -> Option<String> {
    file.read().unwrap().content.map(|bytes| String::from_utf8(bytes).unwrap())
}

/// The epochs of a refusal, mine and the latest.
pub(crate) fn refused<T: std::fmt::Debug>(written: Result<T, FenceError>) -> (u64, u64) {
    let fenced = written.unwrap_err().fenced().expect("fenced");
    (fenced.mine.get(), fenced.latest.get())
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
