//! A key's newest message with its headers, as the stream's leader hands it out.

use crate::bucket_api::mark;

/// A value, or the mark of a deletion.
pub(crate) struct KeyMessage {
    pub(crate) revision: u64,
    /// As they came, in lines.
    headers: String,
    pub(crate) payload: Vec<u8>,
}

impl KeyMessage {
    pub(crate) fn new(revision: u64, headers: String, payload: Vec<u8>) -> KeyMessage {
        KeyMessage { revision, headers, payload }
    }

    /// The first header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.headers(name).next().map(str::to_owned)
    }

    pub(crate) fn headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.lines().filter_map(move |line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
    }

    /// Whether it stands for a value that somebody deleted, or that the server took away.
    pub(crate) fn is_mark(&self) -> bool {
        mark(|name| self.header(name)).is_some()
    }
}
