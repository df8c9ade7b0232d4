//! A plain file in the directory's place becomes record 0, once, however many processes try at once.

use std::fs;
use std::path::Path;

use crate::support::{done, names, text};
use bellwether_file::{Numbered, prepare};
use bellwether_support::{Child, Scratch, role};

const SEED: &str = r#"{"holder": "node-1", "renewTime": "2024-05-01T10:00:00Z", "leaseDuration": "10s"}"#;

#[test]
fn a_lease_file_becomes_record_zero_byte_by_byte() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("election");
    fs::write(&dir, SEED).unwrap();
    prepare(&dir).unwrap();
    let records = Numbered::new(&dir, "", |_| true);
    let found = records.load().unwrap().unwrap();
    assert_eq!((found.version.number(), found.settled), (0, true));
    assert_eq!(text(&records).as_deref(), Some(SEED));
    assert_eq!(names(scratch.path()), ["election"]);
    assert_eq!(names(&dir), ["0.json"]);
    assert_eq!(done(records.write(Some(found.version), b"x")).number(), 1);
}

#[test]
fn a_takeover_that_was_killed_half_way_is_finished_by_the_next() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("election");
    fs::write(scratch.path().join(".seed-election"), SEED).unwrap();
    prepare(&dir).unwrap();
    assert_eq!(text(&Numbered::new(&dir, "", |_| true)).as_deref(), Some(SEED));
    assert_eq!(names(scratch.path()), ["election"]);
    // Killed just before the plain file lost its first name.
    let dir = scratch.path().join("other");
    fs::write(&dir, SEED).unwrap();
    fs::hard_link(&dir, scratch.path().join(".seed-other")).unwrap();
    prepare(&dir).unwrap();
    assert_eq!(text(&Numbered::new(&dir, "", |_| true)).as_deref(), Some(SEED));
    assert_eq!(names(scratch.path()), ["election", "other"]);
}

#[test]
fn a_straggler_never_touches_a_directory_in_use() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("election");
    fs::write(&dir, SEED).unwrap();
    prepare(&dir).unwrap();
    let records = Numbered::new(&dir, "", |_| true);
    let at = records.load().unwrap().map(|found| found.version);
    let _ = done(records.write(at, b"leader"));
    // What a straggler puts back after everyone else is through.
    fs::write(scratch.path().join(".seed-election"), SEED).unwrap();
    prepare(&dir).unwrap();
    assert_eq!(text(&records).as_deref(), Some("leader"));
}

#[test]
fn many_processes_at_once_take_it_over_once() {
    if let Some(path) = role() {
        return race(Path::new(&path));
    }
    for _ in 0..10 {
        let scratch = Scratch::new();
        let dir = scratch.path().join("election");
        fs::write(&dir, SEED).unwrap();
        let mut children: Vec<Child> = (0..4)
            .map(|_| {
                Child::start("takeover::many_processes_at_once_take_it_over_once", dir.to_str().unwrap())
            })
            .collect();
        for child in &mut children {
            assert!(child.process().wait().unwrap().success());
        }
        let records = Numbered::new(&dir, "", |_| true);
        // More than 16 when a writer that eight others overtook was told to look, and wrote again.
        assert!(records.load().unwrap().unwrap().version.number() >= 16, "a write was lost");
        let left = names(scratch.path());
        assert!(left.iter().all(|name| name == "election" || name == ".seed-election"), "{left:?}");
    }
}

/// In each of the processes: four threads prepare and add one record each; none may be lost to a late preparation.
fn race(dir: &Path) {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                prepare(dir).unwrap();
                let records = Numbered::new(dir, "", |_| true);
                loop {
                    let found = records.load().unwrap().expect("record 0 is there once the directory is");
                    if let bellwether_backend::Write::Done(_) =
                        records.write(Some(found.version), b"x").unwrap()
                    {
                        break;
                    }
                }
            });
        }
    });
}
