//! Real processes that write without a pause are stopped and killed at whatever instruction they are: the others go on.

use std::time::Duration;

use bellwether_backend::Write;
use bellwether_file::{Numbered, Value};
use bellwether_support::{Child, Scratch, role, until_blocking};

const ROUNDS: u64 = 40;

#[test]
fn a_writer_stopped_or_killed_anywhere_holds_nobody_up() {
    if let Some(dir) = role() {
        return count_for_ever(&dir);
    }
    let scratch = Scratch::new();
    let start = || {
        let mut child = Child::start(
            "stopped_anywhere::a_writer_stopped_or_killed_anywhere_holds_nobody_up",
            scratch.path().to_str().unwrap(),
        );
        child.wait_for("counting");
        child
    };
    let records = Numbered::new(scratch.path(), "", |_| true);
    let mut children = [start(), start()];
    for round in 0..ROUNDS {
        let victim = &mut children[(round % 2) as usize];
        // Not a wait for anything: it spreads the moments at which the victim is caught.
        std::thread::sleep(Duration::from_micros(round * 3571 % 4000));
        victim.signal("-STOP");
        goes_on(&records);
        if round % 4 < 2 {
            victim.signal("-CONT");
        } else {
            victim.kill();
            goes_on(&records);
            children[(round % 2) as usize] = start();
        }
    }
}

/// Whether twenty more values come, each one more than the last, whoever is stopped.
fn goes_on(records: &Numbered) {
    let first = number(records);
    until_blocking(|| {
        let goes_on = number(records) >= first + 20;
        goes_on.then_some(()).ok_or_else(|| format!("stuck at {first}"))
    });
}

/// Values are their own numbers, so a lost or doubled update would show.
fn number(records: &Numbered) -> u64 {
    let Some(found) = records.load().unwrap() else { return 0 };
    let Value::Bytes(bytes) = found.value else { panic!("{found:?}") };
    let counted: u64 = std::str::from_utf8(&bytes).unwrap().parse().unwrap();
    assert_eq!(counted, found.version.number());
    assert!(found.settled);
    counted
}

fn count_for_ever(dir: &str) {
    let records = Numbered::new(dir, "", |_| true);
    println!("counting");
    loop {
        let now = number(&records);
        let at = records.load().unwrap();
        if at.as_ref().map_or(0, |found| found.version.number()) != now {
            continue;
        }
        match records.write(at.map(|found| found.version), (now + 1).to_string().as_bytes()).unwrap() {
            Write::Done(version) => assert_eq!(version.number(), now + 1),
            Write::Conflict => {}
            Write::Unknown(error) | Write::Refused(error) => panic!("{error}"),
        }
    }
}
