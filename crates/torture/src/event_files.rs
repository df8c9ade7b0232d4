//! The event lines of the candidates, read as they are written.
//!
//! Each candidate appends to a file of its own, whole lines in single writes, also across restarts. The kernel tells when one grows.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use bellwether_audit::Line;
use bellwether_deadman::ReadableFd;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// Room for some hundred of the kernel's notices. What they say does not matter, only that they came.
const NOTICES_BYTES: usize = 16 * 1024;

/// The files of all candidates.
#[derive(Debug)]
pub(crate) struct EventFiles {
    notices: ReadableFd,
    tails: Vec<Tail>,
}

#[derive(Debug)]
struct Tail {
    path: PathBuf,
    file: Option<File>,
    /// What has no line end yet.
    begun: Vec<u8>,
}

impl EventFiles {
    /// Files of these names in this directory. They need not be there yet.
    pub(crate) fn in_directory(
        directory: &Path,
        names: impl Iterator<Item = PathBuf>,
    ) -> io::Result<EventFiles> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&queue, directory, WatchFlags::MODIFY)?;
        let tail = |path| Tail { path, file: None, begun: Vec::new() };
        Ok(EventFiles { notices: ReadableFd::new(queue)?, tails: names.map(tail).collect() })
    }

    /// Waits until one of them has grown.
    pub(crate) async fn grown(&self) {
        let mut notices = vec![0; NOTICES_BYTES];
        let read = self.notices.read_with(|fd| Ok(rustix::io::read(fd.as_fd(), &mut notices)?)).await;
        if read.is_err() {
            // The runtime is shutting down.
            std::future::pending().await
        }
    }

    /// What was written since, each line with the place of its file.
    pub(crate) fn read(&mut self) -> Vec<(usize, Line)> {
        let mut lines = Vec::new();
        for (at, tail) in self.tails.iter_mut().enumerate() {
            tail.read(&mut |line| lines.push((at, line)));
        }
        lines
    }
}

impl Tail {
    fn read(&mut self, line: &mut impl FnMut(Line)) {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return };
        // What cannot be read now can be later, and the verdict misses it otherwise.
        let _ = file.read_to_end(&mut self.begun);
        while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
            let whole: Vec<u8> = self.begun.drain(..=end).collect();
            if let Some(parsed) = std::str::from_utf8(&whole).ok().and_then(Line::parse) {
                line(parsed);
            }
        }
    }
}
