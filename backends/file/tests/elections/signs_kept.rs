//! A sign of life that somebody deleted is made anew where that proves no more than it should.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{actor, incarnation, names};
use bellwether_backend::Backend;
use bellwether_file::File;
use bellwether_support::{Actor, Scratch};

const LONG: Duration = Duration::from_secs(60);

/// Whether the newest record promises that its holder's death can be proven.
fn promises(dir: &Path) -> bool {
    let number = |name: &String| name.strip_suffix(".json")?.parse::<u64>().ok();
    let newest = names(dir).iter().filter_map(number).max().unwrap();
    fs::read_to_string(dir.join(format!("{newest}.json"))).unwrap().contains("bootId")
}

fn sign(dir: &Path, actor: &Actor<File>) -> PathBuf {
    dir.join(format!("{}.alive", actor.bid.who.incarnation))
}

#[tokio::test]
async fn it_is_made_anew_at_the_next_renewal() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("reports");
    let leader = actor(scratch.path(), "a", LONG);
    let grant = leader.lead().await;
    fs::remove_file(sign(&dir, &leader)).unwrap();
    leader.keep(&grant).await;
    assert!(sign(&dir, &leader).exists() && promises(&dir));
}

#[tokio::test]
async fn but_not_while_a_guard_holds_the_old_one_for_this_leadership() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("reports");
    let leader = actor(scratch.path(), "a", LONG);
    let grant = leader.lead().await;
    let guarded = leader.backend.crash_proof(&leader.on, &leader.bid.who);
    assert_eq!(guarded.len(), 1);
    leader.keep(&grant).await;
    assert!(promises(&dir), "nothing is wrong yet");
    fs::remove_file(sign(&dir, &leader)).unwrap();
    leader.keep(&grant).await;
    assert!(
        !sign(&dir, &leader).exists() && !promises(&dir),
        "a kill would prove what the guard still holds back"
    );
    leader.let_go(&grant).await;
    leader.lead().await;
    assert!(sign(&dir, &leader).exists() && promises(&dir), "a new leadership, a new guard");
}

/// Found by review: every change of runtime kept a locked file of its own.
#[tokio::test]
async fn a_candidate_whose_runtime_ended_leaves_none_once_it_cannot_lead_any_more() {
    for ttl in [LONG, Duration::from_millis(500)] {
        let scratch = Scratch::new();
        let dir = scratch.path().join("reports");
        let mut candidate = actor(scratch.path(), "a", ttl);
        candidate.lead().await;
        let before = sign(&dir, &candidate);
        candidate.backend.change_runtime().unwrap();
        candidate.bid.who.incarnation = incarnation(7);
        if ttl == LONG {
            candidate.denied().await;
            assert!(before.exists(), "its work may not have ended yet");
        } else {
            let (grant, _) = candidate.lead_within(10 * ttl).await;
            candidate.keep(&grant).await;
            assert!(!before.exists() && sign(&dir, &candidate).exists());
        }
    }
}

#[tokio::test]
async fn a_candidate_that_retires_or_is_dropped_leaves_none() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("reports");
    let leader = actor(scratch.path(), "a", LONG);
    let grant = leader.lead().await;
    leader.let_go(&grant).await;
    assert!(sign(&dir, &leader).exists(), "it may stand again");
    leader.backend.retire(&leader.on, &leader.bid.who);
    assert!(!sign(&dir, &leader).exists());
    leader.lead().await;
    let place = sign(&dir, &leader);
    assert!(place.exists());
    drop(leader);
    assert!(!place.exists());
}
