//! What readers see: by the function, and in a shell as the documentation says.

use std::path::Path;
use std::process::{Command, Output};

use bellwether_fence::file::{CONTENT_MAX_BYTES, read};
use bellwether_support::Scratch;

use crate::stage::{epoch, fenced, names, stamp};

/// The lines of the documentation.
fn shell(dir: &Path) -> Output {
    let documentation = include_str!("../../src/file/mod.rs");
    let (_, rest) = documentation.split_once("//! ```sh\n").unwrap();
    let (lines, _) = rest.split_once("//! ```").unwrap();
    let script: String =
        lines.lines().map(|line| line.trim_start_matches("//! ").to_owned() + "\n").collect();
    let script = script.replace("DIR", dir.to_str().unwrap());
    Command::new("sh").args(["-c", &script]).output().unwrap()
}

#[test]
fn a_shell_reads_the_very_bytes() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("routes");
    let file = fenced(&dir);
    for (number, content) in
        [&b"line\n"[..], b"", b"no end of line", b"\0\xff\n\n", b"a\nb"].iter().cycle().take(23).enumerate()
    {
        file.write(epoch(number as u64), content).unwrap();
        let printed = shell(&dir);
        assert!(printed.status.success(), "{printed:?}");
        assert_eq!(printed.stdout, *content, "write {number}");
        assert_eq!(file.read().unwrap().content.as_deref(), Some(*content));
    }
    assert_eq!(names(&dir).len(), 8, "the last eight stay");
    file.remove(epoch(50)).unwrap();
    assert_eq!(shell(&dir).stdout, b"");
}

#[test]
fn what_was_never_written_is_nothing_and_reading_makes_nothing() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("routes");
    let value = read(&dir).unwrap();
    assert_eq!((value.stamp, value.content), (None, None));
    assert_eq!(names(scratch.path()), Vec::<String>::new());
}

#[test]
fn large_content_is_kept_and_too_large_content_is_refused_at_once() {
    let scratch = Scratch::new();
    let file = fenced(scratch.path().join("routes"));
    let large = vec![b'x'; CONTENT_MAX_BYTES - 1000];
    file.write(epoch(1), &large).unwrap();
    assert_eq!(file.read().unwrap().content, Some(large));
    let error = file.write(epoch(2), &vec![b'x'; CONTENT_MAX_BYTES]).unwrap_err();
    assert!(!error.is_retryable(), "{error}");
    assert_eq!(file.read().unwrap().stamp, stamp(1), "nothing was written");
}
