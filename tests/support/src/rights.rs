//! What a test has to be permitted to do, and saying aloud where it is not.
//!
//! Root may do everything that tests do. So a test that root cannot run here fails: it must not pass without having
//! tested anything. Where an ordinary user runs the tests, what is left out is said in a way that people notice.

use std::fmt::Display;
use std::io::Write;
use std::process::{Command, Stdio};

/// Whether whoever runs the tests is root.
pub fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("coreutils are installed").stdout;
    id == b"0\n"
}

/// Whether whoever runs the tests may do this, which is tried; if not, `what` is said to be left out.
///
/// # Panics
/// As root, if it does not succeed.
#[track_caller]
pub fn permitted(attempt: &mut Command, what: impl Display) -> bool {
    let tried = attempt.stdin(Stdio::null()).output();
    let tried = tried.unwrap_or_else(|error| panic!("{attempt:?}: {error}"));
    let may = tried.status.success();
    let said = String::from_utf8_lossy(&tried.stderr);
    assert!(
        may || !is_root(),
        "{what} cannot be tested: even root may not run {attempt:?} here ({}); give the container CAP_SYS_ADMIN",
        said.trim()
    );
    if !may {
        skipped(format!("{what} needs root"));
    }
    may
}

/// Says that a test, or a part of it, is left out, and why; `cargo xtask test` lists it at its end.
pub fn skipped(why: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // Not by `println!`, which the test harness swallows if the test passes; and on a line of its own, wherever the harness is on its own.
    let line = format!("\nskipped: {test}: {why}\n");
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
}
