//! What is being measured right now, for whoever waits: on the standard error, so that results stay results.

use std::io::{IsTerminal, Write};

/// Says what is being done. On a terminal each takes the place of the last, until a result does.
pub fn progress(doing: &str) {
    let mut stderr = std::io::stderr().lock();
    // Nobody may be there to read it.
    let _ = if stderr.is_terminal() {
        write!(stderr, "\r{doing} …\x1b[K")
    } else {
        writeln!(stderr, "{doing} …")
    };
}

pub(crate) fn clear() {
    let mut stderr = std::io::stderr().lock();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[K");
    }
}
