//! Death is proven by the kernel's lock, for real processes, and by nothing else.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use crate::support::{incarnation, names};
use bellwether_backend::Life;
use bellwether_core::ElectionName;
use bellwether_file::{Alive, FileNotice, boot_id, death_shows, life, notices, sweep_dead};
use bellwether_support::{Child, Scratch, role, until_blocking};

fn proven(dir: &Path, bits: u128) -> bool {
    let boot = boot_id();
    life(dir, incarnation(bits), boot.as_deref(), boot.as_deref()) == Life::Dead
}

/// In a child: holds the sign of life of incarnation 7 until it is killed or told to end.
fn hold(dir: &str) {
    let _alive = Alive::take(Path::new(dir), incarnation(7)).unwrap();
    println!("holding");
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_living_incarnation_is_not_dead_and_one_that_ended_in_order_proves_nothing() {
    let scratch = Scratch::new();
    let alive = Alive::take(scratch.path(), incarnation(7)).unwrap();
    assert_eq!(names(scratch.path()), [format!("{:032x}.alive", 7)]);
    assert!(alive.is_in_place());
    assert!(!proven(scratch.path(), 7));
    drop(alive);
    assert_eq!(names(scratch.path()), Vec::<String>::new());
    assert!(!proven(scratch.path(), 7), "a missing file proves nothing");
}

#[test]
fn only_equal_and_known_boots_count() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join(format!("{:032x}.alive", 7)), "").unwrap();
    let dead = |recorded, ours| life(scratch.path(), incarnation(7), recorded, ours) == Life::Dead;
    assert!(dead(Some("a"), Some("a")));
    for (recorded, ours) in
        [(None, None), (Some("a"), None), (None, Some("a")), (Some("a"), Some("b")), (Some(""), Some(""))]
    {
        assert!(!dead(recorded, ours), "{recorded:?} {ours:?}");
    }
}

#[test]
fn something_else_under_the_name_proves_nothing() {
    let scratch = Scratch::new();
    let place = scratch.path().join(format!("{:032x}.alive", 7));
    fs::create_dir(&place).unwrap();
    assert!(!proven(scratch.path(), 7));
    fs::remove_dir(&place).unwrap();
    fs::write(scratch.path().join("other"), "").unwrap();
    std::os::unix::fs::symlink("other", &place).unwrap();
    assert!(!proven(scratch.path(), 7));
}

#[test]
fn a_duplicate_keeps_the_lock_until_the_last_one_is_closed() {
    let scratch = Scratch::new();
    let alive = Alive::take(scratch.path(), incarnation(7)).unwrap();
    let guard = alive.duplicate().unwrap();
    let name = scratch.path().join(format!("{:032x}.alive", 7));
    let kept = scratch.path().join("kept");
    fs::hard_link(&name, &kept).unwrap();
    drop(alive);
    fs::rename(&kept, &name).unwrap();
    assert!(!proven(scratch.path(), 7));
    drop(guard);
    // A child that another test starts at this moment has a copy of everything until it has become its program.
    until_blocking(|| proven(scratch.path(), 7).then_some(()).ok_or("it counts as alive"));
}

#[test]
fn a_sign_of_life_deleted_by_hand_is_noticed_and_its_owner_removes_nobody_elses() {
    let scratch = Scratch::new();
    let alive = Alive::take(scratch.path(), incarnation(7)).unwrap();
    let name = scratch.path().join(format!("{:032x}.alive", 7));
    fs::remove_file(&name).unwrap();
    assert!(!alive.is_in_place());
    fs::write(&name, "another").unwrap();
    drop(alive);
    assert!(name.exists());
}

#[test]
fn the_dead_are_swept_but_not_the_living_nor_whom_the_record_names() {
    let scratch = Scratch::new();
    let _alive = Alive::take(scratch.path(), incarnation(1)).unwrap();
    for bits in [2, 3] {
        fs::write(scratch.path().join(format!("{bits:032x}.alive")), "").unwrap();
    }
    sweep_dead(scratch.path(), Some(incarnation(2)));
    assert_eq!(names(scratch.path()), [format!("{:032x}.alive", 1), format!("{:032x}.alive", 2)]);
}

#[test]
fn a_stopped_process_is_alive_and_a_killed_one_is_dead() {
    if let Some(dir) = role() {
        return hold(&dir);
    }
    let scratch = Scratch::new();
    let mut child = Child::start(
        "signs_of_life::a_stopped_process_is_alive_and_a_killed_one_is_dead",
        scratch.path().to_str().unwrap(),
    );
    child.wait_for("holding");
    assert!(!proven(scratch.path(), 7));
    child.signal("-STOP");
    assert!(!proven(scratch.path(), 7));
    child.kill();
    assert!(proven(scratch.path(), 7));
}

#[tokio::test]
async fn a_kill_is_noticed_and_proven_within_milliseconds() {
    if let Some(dir) = role() {
        return hold(&dir);
    }
    let mut took = Vec::new();
    for _ in 0..10 {
        let scratch = Scratch::new();
        let mut child = Child::start(
            "signs_of_life::a_kill_is_noticed_and_proven_within_milliseconds",
            scratch.path().to_str().unwrap(),
        );
        child.wait_for("holding");
        let (watches, mut notices) = notices();
        let election = ElectionName::new("reports").unwrap();
        watches.watch(&election, scratch.path()).unwrap();
        #[allow(clippy::disallowed_methods, reason = "a measurement of real time")]
        let start = std::time::Instant::now();
        child.process().kill().unwrap();
        let notice = tokio::time::timeout(Duration::from_secs(1), notices.next()).await.unwrap();
        assert_eq!(notice, FileNotice::Closed(election, incarnation(7)));
        assert!(death_shows(|| proven(scratch.path(), 7)).await);
        took.push(start.elapsed());
        assert!(took.iter().all(|took| *took < Duration::from_secs(1)), "{took:?}");
    }
    took.sort();
    println!("from kill -9 to proof: median {:?}, longest {:?}", took[took.len() / 2], took[took.len() - 1]);
}
