//! Several processes with several threads each count up one register: no count is lost, none is made twice.

mod support;

use bellwether_file::{Numbered, Value, Write};
use support::{Process, Scratch, role, text};

const PROCESSES: usize = 4;
const THREADS: usize = 2;
const COUNTS: u64 = 60;

#[test]
fn no_update_is_lost_between_processes_and_threads() {
    if let Some(dir) = role() {
        return std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| count(&dir));
            }
        });
    }
    let scratch = Scratch::new();
    let dir = scratch.path().to_str().unwrap();
    let mut children: Vec<Process> = (0..PROCESSES)
        .map(|_| Process::start("no_update_is_lost_between_processes_and_threads", dir))
        .collect();
    let watcher = Numbered::new(dir, "");
    let mut last = 0;
    while children.iter_mut().any(|child| child.0.try_wait().unwrap().is_none()) {
        // A reader never sees it go back, nor vanish, while eight writers move and sweep it.
        let now = text(&watcher).map_or(0, |text| text.parse().unwrap());
        assert!(now >= last, "{now} after {last}");
        last = now;
    }
    for child in &mut children {
        assert!(child.0.wait().unwrap().success());
    }
    assert_eq!(text(&watcher), Some((PROCESSES as u64 * THREADS as u64 * COUNTS).to_string()));
    assert_eq!(watcher.load().unwrap().unwrap().version.number(), PROCESSES as u64 * THREADS as u64 * COUNTS);
}

fn count(dir: &str) {
    let records = Numbered::new(dir, "");
    let mut counted = 0;
    while counted < COUNTS {
        let found = records.load().unwrap();
        let now: u64 = match found.as_ref().map(|found| &found.value) {
            Some(Value::Bytes(bytes)) => std::str::from_utf8(bytes).unwrap().parse().unwrap(),
            Some(other) => panic!("{other:?}"),
            None => 0,
        };
        match records.write(found.map(|found| found.version), (now + 1).to_string().as_bytes()).unwrap() {
            Write::Done(version) => {
                assert_eq!(version.number(), now + 1);
                counted += 1;
            }
            Write::Conflict => {}
            Write::Unknown(error) => panic!("{error}"),
        }
    }
}
