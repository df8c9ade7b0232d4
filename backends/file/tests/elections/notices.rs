//! Followers wake for what matters and for nothing else.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::support::{done, incarnation};
use bellwether_core::ElectionName;
use bellwether_file::{Alive, FileNotice, FileNotices, Numbered, notices, polled_notices};
use bellwether_support::{Scratch, role};

fn election(name: &str) -> ElectionName {
    ElectionName::new(name).unwrap()
}

async fn next(notices: &mut FileNotices) -> FileNotice {
    tokio::time::timeout(Duration::from_secs(5), notices.next()).await.expect("no notice came")
}

async fn all(notices: &mut FileNotices) -> Vec<FileNotice> {
    let mut all = Vec::new();
    while let Ok(notice) = tokio::time::timeout(Duration::from_millis(20), notices.next()).await {
        all.push(notice);
    }
    all
}

fn write(dir: &Path, prefix: &str) {
    let records = Numbered::new(dir, prefix, |_| true);
    let at = records.load().unwrap().map(|found| found.version);
    let _ = done(records.write(at, b"x"));
}

#[tokio::test]
async fn a_write_is_one_notice_for_the_right_election_however_much_it_sweeps() {
    let (one, two) = (Scratch::new(), Scratch::new());
    let (watches, mut notices) = notices();
    watches.watch(&election("one"), one.path()).unwrap();
    watches.watch(&election("two"), two.path()).unwrap();
    assert!(!watches.is_degraded());
    for _ in 0..12 {
        write(two.path(), "");
        assert_eq!(all(&mut notices).await, [FileNotice::Record(election("two"))]);
    }
    write(one.path(), "history.");
    assert_eq!(all(&mut notices).await, []);
    fs::remove_file(two.path().join("12.json")).unwrap();
    assert_eq!(next(&mut notices).await, FileNotice::Record(election("two")));
    watches.unwatch(&election("two"));
    write(two.path(), "");
    fs::write(one.path().join(".tmp-x"), "x").unwrap();
    fs::write(one.path().join("unrelated"), "x").unwrap();
    assert_eq!(all(&mut notices).await, []);
}

#[tokio::test]
async fn the_end_of_a_sign_of_life_is_a_notice_and_its_beginning_is_not() {
    let scratch = Scratch::new();
    let (watches, mut notices) = notices();
    watches.watch(&election("one"), scratch.path()).unwrap();
    let alive = Alive::take(scratch.path(), incarnation(9)).unwrap();
    assert_eq!(all(&mut notices).await, []);
    drop(alive);
    assert_eq!(all(&mut notices).await, [FileNotice::Closed(election("one"), incarnation(9))]);
}

#[tokio::test]
async fn a_directory_removed_or_moved_away_is_gone_once_and_can_be_watched_anew() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("election");
    let (watches, mut notices) = notices();
    for moved in [false, true] {
        fs::create_dir(&dir).unwrap();
        watches.watch(&election("one"), &dir).unwrap();
        if moved {
            fs::rename(&dir, scratch.path().join("moved")).unwrap();
        } else {
            fs::remove_dir(&dir).unwrap();
        }
        assert_eq!(all(&mut notices).await, [FileNotice::Gone(election("one"))]);
        assert!(watches.watch(&election("one"), &dir).is_err());
    }
    fs::create_dir(&dir).unwrap();
    watches.watch(&election("one"), &dir).unwrap();
    write(&dir, "");
    assert_eq!(next(&mut notices).await, FileNotice::Record(election("one")));
}

#[tokio::test]
async fn a_queue_that_overflowed_says_to_look_at_everything() {
    let limit: usize =
        fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    let scratch = Scratch::new();
    let (watches, mut notices) = notices();
    watches.watch(&election("one"), scratch.path()).unwrap();
    for number in 0..=limit {
        fs::write(scratch.path().join(format!("{}.json", number % 7)), "").unwrap();
        fs::remove_file(scratch.path().join(format!("{}.json", number % 7))).unwrap();
    }
    assert!(all(&mut notices).await.contains(&FileNotice::Anything));
    write(scratch.path(), "");
    assert_eq!(next(&mut notices).await, FileNotice::Record(election("one")));
}

#[tokio::test(start_paused = true)]
async fn without_the_kernel_everything_is_looked_at_every_second() {
    let scratch = Scratch::new();
    let (watches, mut notices) = polled_notices();
    watches.watch(&election("one"), scratch.path()).unwrap();
    assert!(watches.is_degraded());
    for _ in 0..5 {
        assert_eq!(next(&mut notices).await, FileNotice::Anything);
    }
    let soon = tokio::time::timeout(Duration::from_millis(900), notices.next()).await;
    assert!(soon.is_err(), "not more often than that");
}

/// In a user namespace of its own, where the limits can be lowered without touching anybody else's.
#[test]
fn where_the_kernels_limits_are_used_up_notices_degrade_and_still_come() {
    const NAME: &str = "notices::where_the_kernels_limits_are_used_up_notices_degrade_and_still_come";
    if role().is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(async {
            let scratch = Scratch::new();
            let (watches, mut notices) = notices();
            watches.watch(&election("one"), scratch.path()).unwrap();
            assert!(watches.is_degraded());
            for _ in 0..2 {
                assert_eq!(next(&mut notices).await, FileNotice::Anything);
            }
            println!("degraded as it should");
        });
    }
    for limit in ["max_inotify_watches", "max_inotify_instances"] {
        let output = std::process::Command::new("unshare")
            .args(["--user", "--map-root-user", "sh", "-c"])
            .arg(format!("echo 0 > /proc/sys/user/{limit} && exec \"$0\" --exact {NAME} --nocapture"))
            .arg(std::env::current_exe().unwrap())
            .env("BELLWETHER_TEST_ROLE", "limited")
            .output();
        let said = output.as_ref().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        assert!(
            said.is_ok_and(|said| said.contains("degraded as it should")),
            "this test needs `unshare` and a kernel that permits user namespaces: {output:?}"
        );
    }
}
