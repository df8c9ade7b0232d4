//! What a service remembers after a restart.

use bellwether_fence::http::FenceLayer;
use bellwether_support::Scratch;

use crate::stage::{Stage, election};

#[tokio::test]
async fn a_directory_outlives_a_restart_and_memory_does_not() {
    let scratch = Scratch::new();
    let kept = || FenceLayer::in_directory(election(), scratch.path().join("epoch"));
    let first = Stage::new(kept()).await;
    assert_eq!(first.post("/", 2).await.status().await, 200);
    drop(first);
    let second = Stage::new(kept()).await;
    assert_eq!(second.post("/", 1).await.status().await, 412, "the first request after the restart");
    assert_eq!(second.post("/", 2).await.status().await, 200);
    drop(second);
    let forgetful = || FenceLayer::in_memory(election());
    let first = Stage::new(forgetful()).await;
    assert_eq!(first.post("/", 2).await.status().await, 200);
    drop(first);
    let second = Stage::new(forgetful()).await;
    assert_eq!(second.post("/", 1).await.status().await, 200, "as documented");
}

#[tokio::test]
async fn nothing_is_handled_while_the_epoch_cannot_be_kept() {
    let scratch = Scratch::new();
    let place = scratch.path().join("epoch");
    std::fs::write(&place, "a plain file").unwrap();
    let stage = Stage::new(FenceLayer::in_directory(election(), &place)).await;
    let (status, _, body) = stage.post("/", 1).await.answer().await;
    assert_eq!(status, 500, "{body}");
    assert!(body.contains("epoch_not_kept") && !body.contains("plain"), "{body}");
    assert_eq!(stage.effects(), Vec::<String>::new());
    std::fs::remove_file(&place).unwrap();
    assert_eq!(stage.post("/", 1).await.status().await, 200, "it is asked again");
}

#[tokio::test]
async fn the_store_is_asked_once_for_each_epoch() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("epoch");
    let stage = Stage::new(FenceLayer::in_directory(election(), &dir)).await;
    for number in [1, 1, 1, 2, 2, 2] {
        assert_eq!(stage.post("/", number).await.status().await, 200);
    }
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
}
