//! Leaders of ever later epochs race each other, stopped and killed at whatever instruction they are.

use std::path::Path;
use std::time::Duration;

use bellwether_core::Epoch;
use bellwether_fence::FenceError;
use bellwether_support::{Child, Scratch, role};

use crate::stage::{epoch, fenced};

const LEADERS: u64 = 3;
const WRITES: u64 = 120;

/// Counts up under an epoch of its own until it is fenced, and then under a later one. Every count is one more than what it replaces.
fn lead_again_and_again(dir: &str, number: u64) -> [u64; 3] {
    let file = fenced(dir);
    let [mut done, mut unknown, mut fenced] = [0; 3];
    let mut mine = epoch(LEADERS + number);
    while done < WRITES {
        match file.update(mine, |before| (count(before.as_deref()) + 1).to_string().into_bytes()) {
            Ok(_) => {
                done += 1;
                let stamp = file.read().unwrap().stamp.unwrap();
                assert!(stamp.epoch >= mine, "{} after {mine} has written", stamp.epoch);
            }
            Err(FenceError::Fenced(by)) => {
                assert!(by.mine == mine && by.latest > mine, "{by:?}");
                fenced += 1;
                mine = next_of(number, by.latest);
            }
            Err(FenceError::Unknown(_)) => unknown += 1,
            Err(FenceError::Failed(failure)) => panic!("{failure}"),
        }
    }
    [done, unknown, fenced]
}

/// The first epoch above this one that is nobody else's.
fn next_of(number: u64, latest: Epoch) -> Epoch {
    let above = latest.get() + 1;
    epoch(above + (LEADERS + number - above % LEADERS) % LEADERS)
}

fn count(content: Option<&[u8]>) -> u64 {
    content.map_or(0, |bytes| std::str::from_utf8(bytes).unwrap().parse().unwrap())
}

fn told(dir: &Path, number: u64) -> std::path::PathBuf {
    dir.with_extension(number.to_string())
}

#[test]
fn what_is_observed_never_goes_back_and_no_write_is_lost() {
    const TEST: &str = "races::what_is_observed_never_goes_back_and_no_write_is_lost";
    if let Some(role) = role() {
        let (number, dir) = role.split_once(' ').unwrap();
        let number = number.parse().unwrap();
        let told_as = lead_again_and_again(dir, number).map(|count| count.to_string()).join(" ");
        return std::fs::write(told(Path::new(dir), number), told_as).unwrap();
    }
    let scratch = Scratch::new();
    let dir = scratch.path().join("routes");
    let start = |number| Child::start(TEST, &format!("{number} {}", dir.display()));
    let mut leaders: Vec<Child> = (0..LEADERS).map(start).collect();
    let file = fenced(&dir);
    let (mut last, mut looks) = ((epoch(0), 0), 0_u64);
    let mut stopped: Option<usize> = None;
    let is_running = |child: &mut Child| child.process().try_wait().unwrap().is_none();
    while stopped.is_some() || leaders.iter_mut().any(is_running) {
        let value = file.read().unwrap();
        let now = (value.stamp.map_or(epoch(0), |stamp| stamp.epoch), count(value.content.as_deref()));
        assert!(now.0 >= last.0 && now.1 >= last.1, "{now:?} after {last:?}");
        last = now;
        looks += 1;
        if looks % 8 == 0 {
            // Who is stopped sleeps over some writes of the others, at whatever instruction.
            if let Some(number) = stopped.take() {
                leaders[number].signal("-CONT");
            } else {
                let number = usize::try_from(looks / 8 % LEADERS).unwrap();
                if is_running(&mut leaders[number]) {
                    leaders[number].signal("-STOP");
                    stopped = Some(number);
                }
            }
        }
    }
    let mut all = [0; 3];
    for (number, leader) in (0..).zip(&mut leaders) {
        assert!(leader.process().wait().unwrap().success());
        let text = std::fs::read_to_string(told(&dir, number)).unwrap();
        for (sum, count) in all.iter_mut().zip(text.split(' ')) {
            *sum += count.parse::<u64>().unwrap();
        }
    }
    let [done, unknown, fenced] = all;
    let counted = count(file.read().unwrap().content.as_deref());
    println!("{done} writes, {unknown} unknown, {fenced} fenced, {looks} looks");
    assert_eq!(done, LEADERS * WRITES);
    assert!((done..=done + unknown).contains(&counted), "{counted} counted, {done} done, {unknown} unknown");
    assert!(fenced > 0, "they never met");
}

#[test]
fn a_leader_killed_anywhere_leaves_a_file_that_others_write() {
    const TEST: &str = "races::a_leader_killed_anywhere_leaves_a_file_that_others_write";
    if let Some(role) = role() {
        let (number, dir) = role.split_once(' ').unwrap();
        println!("leading");
        let file = fenced(dir);
        loop {
            file.write(epoch(number.parse().unwrap()), &[b'x'; 100_000]).unwrap();
        }
    }
    let scratch = Scratch::new();
    let dir = scratch.path().join("routes");
    let file = fenced(&dir);
    for round in 0..20 {
        let mut leader = Child::start(TEST, &format!("{} {}", 2 * round + 1, dir.display()));
        leader.wait_for("leading");
        // Not a wait for anything: it spreads the moments at which the leader is killed.
        std::thread::sleep(Duration::from_micros(round * 3571 % 9000));
        leader.kill();
        let left = file.raise(epoch(2 * round + 2)).unwrap();
        assert!(left.is_none_or(|content| content.len() == 100_000 || content == b"mine"));
        file.write(epoch(2 * round + 2), b"mine").unwrap();
    }
}
