//! Each of its judges can say that something is wrong, and is heard.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;

use bellwether_core::{ElectionName, Epoch};
use bellwether_deadman::boot_now;
use bellwether_fence::file::{self, FencedFile};
use bellwether_tests::{EventLine, json, torture, until_blocking};
use rustix::fs::{FlockOperation, flock};

/// A run of a few seconds, and what somebody does to its files as soon as there is a leader.
fn meddled(with: impl FnOnce(&Path, &EventLine)) -> Output {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (store, files) = (directory.path().join("store"), directory.path().join("run"));
    let url = format!("file:{}", store.display());
    let files_flag = files.display().to_string();
    std::thread::scope(|scope| {
        let run = scope
            .spawn(move || torture::tortured(&url, &["--for", "6s", "--seed", "1", "--dir", &files_flag]));
        let leader = until_blocking(|| leader(&files).ok_or("nobody leads"));
        with(&files, &leader);
        run.join().expect("it ends")
    })
}

/// The first line of a leadership.
fn leader(files: &Path) -> Option<EventLine> {
    let lines = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    let all: String = (1..=3).map(|number| lines(files.join(format!("events/c{number}.jsonl")))).collect();
    all.lines().filter_map(EventLine::parse).find(|line| line.event() == "acquired")
}

#[track_caller]
fn violated(output: &Output, part: &str) {
    let report = json(output);
    assert_eq!((output.status.code(), report["verdict"].as_str()), (Some(1), Some("violated")), "{report:#}");
    let violations = report["violations"].to_string();
    assert!(violations.contains(part), "{report:#}");
    let again = report["reproduce_with"].as_str().expect("a line");
    assert!(again.contains("torture --seed 1 --for 6s --candidates 3 --ttl 1s --faults kill"), "{again}");
    assert!(report["files"].is_string(), "what shows it is kept: {report:#}");
}

#[test]
fn a_witness_that_meets_another_is_a_violation() {
    let mut held = None;
    let output = meddled(|files, _| {
        // Its command starts after the leadership.
        let open = || File::options().append(true).open(files.join("witness/exclusive"));
        let exclusive = until_blocking(open);
        // Waits until the first witness is gone. The next one asks for the lock later, and does not wait for it.
        flock(&exclusive, FlockOperation::LockExclusive).expect("nobody keeps it for ever");
        held = Some(exclusive);
    });
    violated(&output, "exclusion broken: the witness of c");
    drop(held);
}

#[test]
fn a_leadership_beside_another_is_a_violation() {
    let output = meddled(|files, leader| {
        let (at, election) = (boot_now(), leader.text("election").expect("a name"));
        let boot_id = leader.text("boot_id").map(|id| format!(r#","boot_id":"{id}""#)).unwrap_or_default();
        let deadline = at.as_nanos() + 20_000_000_000;
        let line = |at: u64, event: &str| {
            format!(
                r#"{{"boot_ns":{at},"election":"{election}","id":"c3","incarnation":"f0","event":"{event}","epoch":9007199254740000,"deadline_boot_ns":{deadline}{boot_id}}}"#
            )
        };
        // The second line shows that it lived on.
        let lines =
            [line(at.as_nanos(), "acquired"), line(at.as_nanos() + 5_000_000_000, "error")].join("\n");
        let file = File::options().create(true).append(true).open(files.join("events/c3.jsonl"));
        writeln!(file.expect("a file of events"), "{lines}").expect("room for a line");
    });
    violated(&output, "led at once");
}

#[test]
fn a_late_write_that_passed_the_fence_is_a_violation() {
    let output = meddled(|files, leader| {
        let election = ElectionName::new(leader.text("election").expect("a name")).expect("a name");
        let checked = FencedFile::new(files.join("witness/checked"), election);
        let epoch = leader.epoch().and_then(Epoch::new).expect("an epoch");
        // What the content would be if a fence had let one pass. A later leader may have written meanwhile.
        until_blocking(|| {
            let now = file::read(checked.dir())
                .ok()
                .and_then(|value| value.stamp)
                .map_or(epoch, |stamp| stamp.epoch);
            checked.update(now, |_| b"7 1 1\n".to_vec()).map_err(|error| error.to_string())
        });
    });
    let report = json(&output);
    assert_eq!((output.status.code(), report["verdict"].as_str()), (Some(1), Some("violated")), "{report:#}");
    assert_eq!(report["fencing"]["checked_late"], 1, "{report:#}");
}
