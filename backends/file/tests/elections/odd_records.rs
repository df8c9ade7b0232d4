//! Records that nobody of ours wrote: each is seen for what it is, replaced by the next write, and nothing outside is touched.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{done, names, text};
use bellwether_core::ErrorKind;
use bellwether_file::{NUMBER_MAX, Numbered, RECORD_MAX_BYTES, Value};
use bellwether_support::Scratch;

#[test]
fn empty_truncated_and_foreign_bytes_are_handed_over_as_they_are_and_replaced() {
    for bytes in [&b""[..], b"{\"holder\": \"a", b"\xff\xfe\0", b"[1,2,3]"] {
        let scratch = Scratch::new();
        fs::write(scratch.path().join("7.json"), bytes).unwrap();
        let records = Numbered::new(scratch.path(), "", |_| true);
        let found = records.load().unwrap().unwrap();
        assert_eq!(found.value, Value::Bytes(bytes.to_vec()));
        assert_eq!(done(records.write(Some(found.version), b"healed")).number(), 8);
        assert_eq!(text(&records).as_deref(), Some("healed"));
    }
}

#[test]
fn a_huge_record_is_not_read_and_is_replaced() {
    let scratch = Scratch::new();
    let path = scratch.path().join("1.json");
    fs::write(&path, vec![b' '; RECORD_MAX_BYTES]).unwrap();
    let records = Numbered::new(scratch.path(), "", |_| true);
    assert!(matches!(records.load().unwrap().unwrap().value, Value::Bytes(_)));
    fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let found = records.load().unwrap().unwrap();
    assert_eq!(found.value, Value::Huge);
    let _ = done(records.write(Some(found.version), b"healed"));
    let refused = records.write(found.version.into(), &vec![0; RECORD_MAX_BYTES + 1]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

#[test]
fn links_directories_and_pipes_are_neither_followed_nor_waited_for_and_do_not_block_the_number() {
    let outside = Scratch::new();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let scratch = Scratch::new();
    let records = Numbered::new(scratch.path(), "", |_| true);
    let place = |number: u64| scratch.path().join(format!("{number}.json"));
    symlink(outside.path().join("secret"), place(1)).unwrap();
    let at = records.load().unwrap().unwrap();
    assert_eq!(at.value, Value::NotAFile);
    assert_eq!(done(records.write(Some(at.version), b"healed")).number(), 2);
    fs::create_dir(place(3)).unwrap();
    fs::write(place(3).join("kept"), "kept").unwrap();
    let at = records.load().unwrap().unwrap();
    assert_eq!(at.value, Value::NotAFile);
    assert_eq!(done(records.write(Some(at.version), b"healed")).number(), 4);
    assert!(std::process::Command::new("mkfifo").arg(place(5)).status().unwrap().success());
    let at = records.load().unwrap().unwrap();
    assert_eq!(at.value, Value::NotAFile);
    for _ in 0..20 {
        let at = records.load().unwrap().unwrap();
        let _ = done(records.write(Some(at.version), b"on"));
    }
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");
    assert!(place(1).is_symlink() && place(5).exists(), "left where they are");
    assert_eq!(fs::read(place(3).join("kept")).unwrap(), b"kept");
    assert_eq!(names(scratch.path()).len(), 8 + 3);
}

#[test]
fn other_names_are_not_records() {
    let scratch = Scratch::new();
    for name in [
        "007.json",
        "+7.json",
        "-1.json",
        "7.json.bak",
        "x.json",
        "99999999999999999999.json",
        "7",
        "history.9.json",
    ] {
        fs::write(scratch.path().join(name), "x").unwrap();
    }
    let records = Numbered::new(scratch.path(), "", |_| true);
    assert_eq!(records.load().unwrap(), None);
    assert_eq!(done(records.write(None, b"first")).number(), 1);
}

#[test]
fn the_last_number_is_an_error_that_says_what_to_do() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join(format!("{NUMBER_MAX}.json")), "x").unwrap();
    let records = Numbered::new(scratch.path(), "", |_| true);
    let at = records.load().unwrap().unwrap().version;
    let error = records.write(Some(at), b"next").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("remove it by hand"), "{error}");
}
