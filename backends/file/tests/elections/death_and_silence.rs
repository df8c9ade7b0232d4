//! A leader that was killed is replaced at once, one that is merely silent by its ttl, and the end of one that was replaced
//! long ago means nothing. With real processes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::support::{actor, names};
use bellwether_backend::Backend;
use bellwether_core::{Outcome, Proof};
use bellwether_deadman::boot_now;
use bellwether_file::boot_id;
use bellwether_support::{Child, Scratch, role};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(600);

/// In a child: leads with the ttl that its role names, and then says nothing more.
async fn lead_in_silence(role: &str) {
    let (millis, dir) = role.split_once(' ').unwrap();
    let actor = actor(Path::new(dir), "child", Duration::from_millis(millis.parse().unwrap()));
    let _grant = actor.lead().await;
    println!("leading");
    std::future::pending::<()>().await;
}

fn child(test: &str, dir: &Path, ttl: Duration) -> Child {
    let mut child = Child::start(test, &format!("{} {}", ttl.as_millis(), dir.display()));
    child.wait_for("leading");
    child
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_killed_leader_is_replaced_in_milliseconds() {
    if let Some(role) = role() {
        return lead_in_silence(&role).await;
    }
    let scratch = Scratch::new();
    let (mut took, mut last) = (Vec::new(), 0);
    for _ in 0..10 {
        let mut leader =
            child("death_and_silence::a_killed_leader_is_replaced_in_milliseconds", scratch.path(), LONG);
        let follower = actor(scratch.path(), "follower", LONG);
        let mut news = follower.news();
        assert!(matches!(follower.denied().await.proof, Proof::Record | Proof::Alive));
        let start = boot_now();
        leader.process().kill().unwrap();
        news.until_seen(|seen| seen.proof == Proof::Dead).await;
        let grant = follower.lead().await;
        took.push(boot_now().since(start));
        assert!(grant.after_crash);
        assert!(grant.epoch.get() > last);
        last = grant.epoch.get();
        assert_eq!(alive_files(scratch.path()), 1, "the dead one's sign of life is swept");
        follower.let_go(&grant).await;
        follower.backend.retire(&follower.on, &follower.bid.who);
        leader.kill();
    }
    took.sort();
    println!("from kill -9 to the next grant: median {:?}, longest {:?}", took[took.len() / 2], took.last());
    assert!(took[took.len() / 2] < Duration::from_millis(100), "{took:?}");
}

#[tokio::test]
async fn a_stopped_leader_is_replaced_by_its_ttl_only_and_its_later_death_deposes_nobody() {
    if let Some(role) = role() {
        return lead_in_silence(&role).await;
    }
    let scratch = Scratch::new();
    let test =
        "death_and_silence::a_stopped_leader_is_replaced_by_its_ttl_only_and_its_later_death_deposes_nobody";
    let mut zombie = child(test, scratch.path(), SHORT);
    zombie.signal("-STOP");
    let heir = actor(scratch.path(), "heir", LONG);
    let begun = boot_now();
    let (grant, at) = heir.lead_within(10 * SHORT).await;
    let took = at.since(begun);
    assert!(took >= SHORT, "{took:?}");
    assert!(!grant.after_crash);

    let third = actor(scratch.path(), "third", LONG);
    let mut news = third.news();
    news.until_seen(|seen| seen.is_held_by(&heir.bid.who)).await;
    zombie.kill();
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert!(third.denied().await.is_held_by(&heir.bid.who));
    heir.keep(&grant).await;
}

#[tokio::test]
async fn a_death_is_not_proven_by_another_boots_record_nor_by_one_that_shows_no_success() {
    if let Some(role) = role() {
        return lead_in_silence(&role).await;
    }
    let test =
        "death_and_silence::a_death_is_not_proven_by_another_boots_record_nor_by_one_that_shows_no_success";
    for case in ["as it is", "another boot", "no boot", "unsettled"] {
        let scratch = Scratch::new();
        let mut leader = child(test, scratch.path(), SHORT);
        leader.kill();
        let dir = scratch.path().join("reports");
        let text = fs::read_to_string(dir.join("1.json")).unwrap();
        let boot = boot_id().unwrap();
        match case {
            "another boot" => {
                let other = text.replace(&boot, "f0f0f0f0-0000-4000-8000-000000000000");
                fs::write(dir.join("2.json"), other).unwrap();
            }
            "no boot" => fs::write(dir.join("2.json"), text.replace("bootId", "x")).unwrap(),
            // Number 3 without a 2: whoever wrote it did not live to see that it had lost.
            "unsettled" => fs::write(dir.join("3.json"), text).unwrap(),
            _ => {}
        }
        let heir = actor(scratch.path(), "heir", LONG);
        let begun = boot_now();
        let (grant, at) = heir.lead_within(10 * SHORT).await;
        let took = at.since(begun);
        let proven = case == "as it is";
        assert_eq!(grant.after_crash, proven, "{case}");
        assert_eq!(took < SHORT, proven, "{case}: {took:?}");
    }
}

#[tokio::test]
async fn a_guards_duplicate_holds_the_proof_back() {
    if let Some(role) = role() {
        let (_, dir) = role.split_once(' ').unwrap();
        let actor = actor(Path::new(dir), "child", LONG);
        let _grant = actor.lead().await;
        let proof = actor.backend.crash_proof(&actor.on, &actor.bid.who);
        assert_eq!(proof.len(), 1);
        // The guard: another process with the duplicate as its standard input, living a little longer.
        let stdin = std::process::Stdio::from(proof.into_iter().next().unwrap());
        let guard = std::process::Command::new("sleep").arg("0.4").stdin(stdin).spawn().unwrap();
        std::mem::forget(guard);
        println!("leading");
        return std::future::pending::<()>().await;
    }
    let scratch = Scratch::new();
    let mut leader =
        child("death_and_silence::a_guards_duplicate_holds_the_proof_back", scratch.path(), LONG);
    leader.kill();
    let heir = actor(scratch.path(), "heir", LONG);
    assert_eq!(heir.denied().await.proof, Proof::Alive);
    let mut news = heir.news();
    news.until_seen(|seen| seen.proof == Proof::Dead).await;
    assert!(heir.lead().await.after_crash);
}

#[tokio::test]
async fn a_request_written_by_another_does_not_touch_the_holders_sign_of_life() {
    if let Some(role) = role() {
        return lead_in_silence(&role).await;
    }
    let scratch = Scratch::new();
    let test = "death_and_silence::a_request_written_by_another_does_not_touch_the_holders_sign_of_life";
    let mut leader = child(test, scratch.path(), LONG);
    let before = names(&scratch.path().join("reports"));
    {
        let asker = actor(scratch.path(), "asker", LONG);
        let epoch = asker.seen().await.epoch.unwrap();
        let what = bellwether_core::Ask::StepDown { to: None };
        let asked = asker.backend.request(&asker.on, &bellwether_core::Request { epoch, what }).await;
        assert!(matches!(asked, Outcome::Done(())), "{asked:?}");
    }
    let after = names(&scratch.path().join("reports"));
    assert_eq!(after.len(), before.len() + 1, "one more record and nothing else: {after:?}");
    let heir = actor(scratch.path(), "heir", LONG);
    assert_eq!(heir.denied().await.proof, Proof::Alive, "the asker's end proves nothing");
    leader.kill();
    assert!(heir.lead().await.after_crash, "and the record it wrote still tells the holder's boot");
}

fn alive_files(dir: &Path) -> usize {
    names(&dir.join("reports")).iter().filter(|name| name.ends_with(".alive")).count()
}
