//! Several processes with several threads each count up one register: no count is lost, none is made twice.

use crate::support::{names, text};
use bellwether_backend::Write;
use bellwether_file::{Numbered, Value};
use bellwether_support::{Child, Scratch, role};

const PROCESSES: usize = 4;
const THREADS: usize = 2;
const COUNTS: usize = 60;

#[test]
fn no_update_is_lost_between_processes_and_threads() {
    if let Some(dir) = role() {
        return std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let dir = &dir;
                scope.spawn(move || count(dir, thread));
            }
        });
    }
    let scratch = Scratch::new();
    let dir = scratch.path().to_str().unwrap();
    let mut children: Vec<Child> = (0..PROCESSES)
        .map(|_| Child::start("many_writers::no_update_is_lost_between_processes_and_threads", dir))
        .collect();
    let watcher = Numbered::new(dir, "", |_| true);
    let mut last = 0;
    while children.iter_mut().any(|child| child.process().try_wait().unwrap().is_none()) {
        // A reader never sees it go back, nor vanish, while eight writers move and sweep it.
        let now = text(&watcher).map_or(0, |text| text.parse().unwrap());
        assert!(now >= last, "{now} after {last}");
        last = now;
    }
    for child in &mut children {
        assert!(child.process().wait().unwrap().success());
    }
    // A writer that eight others overtook is told to look although its write counted, so there may be more.
    let written = watcher.load().unwrap().unwrap().version.number();
    assert!(written >= (PROCESSES * THREADS * COUNTS) as u64, "{written}");
    assert_eq!(text(&watcher), Some(written.to_string()));
    let mut done: Vec<u64> = names(scratch.path())
        .iter()
        .filter(|name| name.starts_with("done-"))
        .flat_map(|name| {
            std::fs::read_to_string(scratch.path().join(name))
                .unwrap()
                .lines()
                .map(|n| n.parse().unwrap())
                .collect::<Vec<u64>>()
        })
        .collect();
    assert_eq!(done.len(), PROCESSES * THREADS * COUNTS);
    done.sort_unstable();
    done.dedup();
    assert_eq!(done.len(), PROCESSES * THREADS * COUNTS, "one number was given out twice");
}

fn count(dir: &str, thread: usize) {
    let records = Numbered::new(dir, "", |_| true);
    let mut counted = Vec::new();
    while counted.len() < COUNTS {
        let found = records.load().unwrap();
        let now: u64 = match found.as_ref().map(|found| &found.value) {
            Some(Value::Bytes(bytes)) => std::str::from_utf8(bytes).unwrap().parse().unwrap(),
            Some(other) => panic!("{other:?}"),
            None => 0,
        };
        match records.write(found.map(|found| found.version), (now + 1).to_string().as_bytes()).unwrap() {
            Write::Done(version) => {
                assert_eq!(version.number(), now + 1);
                counted.push(version.number().to_string());
            }
            Write::Conflict => {}
            Write::Unknown(error) | Write::Refused(error) => panic!("{error}"),
        }
    }
    std::fs::write(format!("{dir}/done-{}-{thread}", std::process::id()), counted.join("\n")).unwrap();
}
