//! Directories that cannot be used: each is a clear error, and nothing that was there is lost.
//!
//! Mounting needs privileges; a machine that does not give them fails these tests by name.

use std::fs;

use crate::support::mounts::{Mounted, mount};
use crate::support::{done, incarnation, names, text};
use bellwether_core::ErrorKind;
use bellwether_file::{Alive, Numbered, prepare};
use bellwether_support::Scratch;

#[test]
fn a_read_only_mount_can_be_read_and_refuses_writes_with_the_reason() {
    let mounted = Mounted::new();
    let records = Numbered::new(mounted.path(), "", |_| true);
    let at = done(records.write(None, b"before"));
    mount(&["-o", "remount,ro"], mounted.path());
    assert_eq!(text(&records).as_deref(), Some("before"));
    let error = records.write(Some(at), b"after").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(error.to_string().contains("mounted read-only"), "{error}");
    let error = Alive::take(mounted.path(), incarnation(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    let error = prepare(&mounted.path().join("sub/election")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    mount(&["-o", "remount,rw"], mounted.path());
    let _ = done(records.write(Some(at), b"after"));
}

#[test]
fn a_full_file_system_keeps_the_value_and_works_again_when_there_is_room() {
    let mounted = Mounted::new();
    let records = Numbered::new(mounted.path(), "", |_| true);
    let at = done(records.write(None, b"before"));
    let filler = mounted.path().join("filler");
    let _ = fs::write(&filler, vec![b'x'; 1 << 20]);
    let error = records.write(Some(at), &[b'y'; 100]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exhausted, "{error}");
    assert!(error.is_retryable() && error.to_string().contains("make room"), "{error}");
    assert_eq!(text(&records).as_deref(), Some("before"));
    assert_eq!(names(mounted.path()), ["1.json", "filler"], "nothing half-written stays");
    fs::remove_file(filler).unwrap();
    let _ = done(records.write(Some(at), b"after"));
}

#[test]
fn a_missing_directory_holds_nothing_and_is_made_on_request() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("a/b/election");
    let records = Numbered::new(&dir, "", |_| true);
    assert_eq!(records.load().unwrap(), None);
    let error = records.write(None, b"x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(names(scratch.path()), Vec::<String>::new(), "looking makes nothing");
    prepare(&dir).unwrap();
    prepare(&dir).unwrap();
    let _ = done(records.write(None, b"x"));
    fs::remove_dir_all(&dir).unwrap();
    assert_eq!(records.load().unwrap(), None);
    prepare(&dir).unwrap();
    assert_eq!(done(records.write(None, b"y")).number(), 2, "numbers go on");
}

#[test]
fn a_file_or_a_broken_link_in_the_directorys_place_is_refused_and_left_alone() {
    let scratch = Scratch::new();
    let path = scratch.path().join("election");
    for contents in
        ["", "precious", "{}", "{\"holder\":\"a\",\"renewTime\":\"x\",\"leaseDuration\":\"soon\"}"]
    {
        fs::write(&path, contents).unwrap();
        let error = prepare(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        assert!(error.to_string().contains("needs a directory there; move it away"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), contents);
        assert_eq!(names(scratch.path()), ["election"]);
    }
    let records = Numbered::new(&path, "", |_| true);
    assert_eq!(records.load().unwrap_err().kind(), ErrorKind::Misconfigured);
    assert_eq!(records.write(None, b"x").unwrap_err().kind(), ErrorKind::Misconfigured);
    assert_eq!(prepare(&path.join("below")).unwrap_err().kind(), ErrorKind::Misconfigured);
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    assert_eq!(prepare(&path).unwrap_err().kind(), ErrorKind::Misconfigured);
}
