//! A writer of an old epoch has looked, is stopped before it writes, and goes on much later.

use std::io::{BufRead, Write};
use std::path::Path;

use bellwether_fence::FenceError;
use bellwether_support::{Child, Scratch, Stopped, role};

use crate::stage::{epoch, fenced, names, refused, stamp, text};

/// Waits in the middle of its write until it is told to go on, and says how the write ended.
fn write_late(dir: &str) {
    let file = fenced(dir);
    let mut told = false;
    let written = file.update(epoch(1), |before| {
        if !told {
            println!("read {before:?}");
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line).unwrap();
            told = true;
        }
        b"too late".to_vec()
    });
    let outcome = match written {
        Ok(_) => "written".to_owned(),
        Err(FenceError::Fenced(fenced)) => format!("fenced {} {}", fenced.mine, fenced.latest),
        Err(other) => format!("{other}"),
    };
    std::fs::write(outcome_of(dir), outcome).unwrap();
}

fn outcome_of(dir: &str) -> std::path::PathBuf {
    Path::new(dir).with_extension("outcome")
}

/// How the write of a process ends that is stopped between its look and its write, while `meanwhile` happens.
fn stopped_while(dir: &Path, meanwhile: impl FnOnce()) -> String {
    const TEST: &str = "late_writers::a_writer_stopped_between_its_look_and_its_write_is_fenced";
    let dir = dir.to_str().unwrap();
    let mut late = Child::start(TEST, dir);
    late.wait_for("read");
    let stopped = Stopped::process(late.id());
    meanwhile();
    writeln!(late.process().stdin.take().unwrap(), "go on").unwrap();
    drop(stopped);
    // Its last lines go nowhere, so its exit status says nothing; what it has written does.
    late.process().wait().unwrap();
    std::fs::read_to_string(outcome_of(dir)).unwrap()
}

#[test]
fn a_writer_stopped_between_its_look_and_its_write_is_fenced() {
    if let Some(dir) = role() {
        return write_late(&dir);
    }
    // So often that the version it looked at stays, is the last that stays, or is swept.
    for writes in [1, 2, 7, 8, 9, 30] {
        let scratch = Scratch::new();
        let dir = scratch.path().join("routes");
        let file = fenced(&dir);
        file.write(epoch(1), b"first").unwrap();
        let outcome = stopped_while(&dir, || {
            for write in 1..=writes {
                file.write(epoch(2), format!("later {write}").as_bytes()).unwrap();
            }
        });
        assert_eq!(outcome, "fenced 1 2", "{writes} writes");
        assert_eq!(text(&file), Some(format!("later {writes}")));
        assert_eq!(file.read().unwrap().stamp, stamp(2));
    }
}

#[test]
fn a_writer_that_finds_nothing_and_is_stopped_creates_nothing_later() {
    for writes in [1, 8, 9, 30] {
        let scratch = Scratch::new();
        let dir = scratch.path().join("routes");
        let file = fenced(&dir);
        let outcome = stopped_while(&dir, || {
            for _ in 0..writes {
                file.write(epoch(2), b"later").unwrap();
            }
        });
        assert_eq!(
            (outcome.as_str(), text(&file).as_deref()),
            ("fenced 1 2", Some("later")),
            "{writes} writes"
        );
    }
}

#[test]
fn raising_alone_fences_a_writer_that_has_looked() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("routes");
    let file = fenced(&dir);
    file.write(epoch(1), b"first").unwrap();
    let mut seen = None;
    let outcome = stopped_while(&dir, || seen = file.raise(epoch(2)).unwrap());
    // What the new leader was given is what is there, whenever the old one goes on.
    assert_eq!((outcome.as_str(), seen.as_deref()), ("fenced 1 2", Some(&b"first"[..])));
    assert_eq!((text(&file).as_deref(), file.read().unwrap().stamp), (Some("first"), stamp(2)));
}

#[test]
fn a_removal_refuses_earlier_epochs_too() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("routes");
    let file = fenced(&dir);
    file.write(epoch(1), b"first").unwrap();
    let outcome = stopped_while(&dir, || file.remove(epoch(2)).unwrap());
    assert_eq!(outcome, "fenced 1 2");
    let left = file.read().unwrap();
    assert_eq!((left.content, left.stamp), (None, stamp(2)));
    assert_eq!(refused(file.raise(epoch(1))), (1, 2));
    file.write(epoch(2), b"again").unwrap();
    assert_eq!(text(&file).as_deref(), Some("again"));
}

#[test]
fn an_equal_epoch_writes_again_and_a_slow_one_of_it_follows() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("routes");
    let file = fenced(&dir);
    file.write(epoch(1), b"first").unwrap();
    // Of the same leader: the look is made again, and the write is done.
    assert_eq!(stopped_while(&dir, || file.write(epoch(1), b"second").unwrap()), "written");
    assert_eq!(text(&file).as_deref(), Some("too late"));
    assert_eq!(names(&dir), ["1.fenced", "2.fenced", "3.fenced"]);
}
