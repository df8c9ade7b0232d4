//! The effects of an earlier epoch are over before a later one's begin.

use std::time::Duration;

use bellwether_fence::http::FenceLayer;
use bellwether_support::until;
use futures_util::{StreamExt, stream};

use crate::stage::{Stage, election};

fn layer() -> FenceLayer {
    // Longer than any test takes: nothing here is to be answered with 503 by chance.
    FenceLayer::in_memory(election()).wait(Duration::from_secs(60))
}

/// Until the later epoch has asked, which its earlier one's refusal shows.
async fn until_asked(stage: &Stage, earlier: u64) {
    until(|| async {
        let status = stage.post("/", earlier).await.status().await;
        if status == 412 { Ok(()) } else { Err(format!("the earlier epoch is still answered with {status}")) }
    })
    .await;
}

#[tokio::test]
async fn a_later_epoch_waits_for_a_request_that_is_being_handled() {
    let mut stage = Stage::new(layer()).await;
    let slow = stage.post("/slow", 1).await;
    assert_eq!(stage.begun.recv().await, Some(1));
    let later = stage.post("/", 2).await;
    until_asked(&stage, 1).await;
    assert!(!stage.effects().iter().any(|effect| effect.starts_with('2')), "{:?}", stage.effects());
    stage.go();
    assert_eq!((slow.status().await, later.status().await), (200, 200));
    let effects = stage.effects();
    let place = |wanted: &str| effects.iter().rposition(|effect| effect == wanted).unwrap();
    assert!(place("1 ends") < place("2 begins"), "{effects:?}");
}

#[tokio::test]
async fn one_epoch_is_handled_side_by_side() {
    let mut stage = Stage::new(layer()).await;
    let (one, two) = (stage.post("/slow", 1).await, stage.post("/slow", 1).await);
    assert_eq!((stage.begun.recv().await, stage.begun.recv().await), (Some(1), Some(1)));
    stage.go();
    stage.go();
    assert_eq!((one.status().await, two.status().await), (200, 200));
}

#[tokio::test]
async fn a_later_epoch_that_waits_too_long_is_told_to_try_again() {
    let mut stage = Stage::new(layer().wait(Duration::from_millis(50))).await;
    let slow = stage.post("/slow", 1).await;
    stage.begun.recv().await;
    let (status, head, body) = stage.post("/", 2).await.answer().await;
    assert_eq!(status, 503, "{body}");
    assert!(head.contains("retry-after: 1") && body.contains("\"busy\""), "{head} {body}");
    // It has asked, so nothing earlier begins any more; what had begun may end.
    assert_eq!(stage.post("/", 1).await.status().await, 412);
    stage.go();
    assert_eq!(slow.status().await, 200);
    assert_eq!(stage.post("/", 2).await.status().await, 200);
}

#[tokio::test]
async fn work_that_outlives_its_answer_keeps_the_fence_with_its_permit() {
    let mut stage = Stage::new(layer()).await;
    assert_eq!(stage.post("/leaves-work", 1).await.status().await, 200);
    stage.begun.recv().await;
    let later = stage.post("/", 2).await;
    until_asked(&stage, 1).await;
    stage.go();
    assert_eq!(later.status().await, 200);
    let effects = stage.effects();
    let place = |wanted: &str| effects.iter().rposition(|effect| effect == wanted).unwrap();
    assert!(place("1 ends later") < place("2 begins"), "{effects:?}");
}

#[tokio::test]
async fn a_client_that_goes_away_holds_nobody_up() {
    let mut stage = Stage::new(layer()).await;
    let slow = stage.post("/slow", 1).await;
    stage.begun.recv().await;
    let waiting = stage.post("/", 2).await;
    until_asked(&stage, 1).await;
    drop((slow, waiting));
    assert_eq!(stage.post("/", 3).await.status().await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn epochs_that_race_are_handled_one_after_the_other() {
    let stage = Stage::new(layer()).await;
    let sent = stream::iter(0..400_u64).map(|number| {
        let stage = &stage;
        async move { stage.post("/", number / 8 + number % 5).await.status().await }
    });
    let answers = sent.buffer_unordered(16).collect::<Vec<u16>>();
    let answers = tokio::time::timeout(Duration::from_secs(60), answers).await.unwrap();
    let handled = answers.iter().filter(|status| **status == 200).count();
    assert!(answers.iter().all(|status| [200, 412].contains(status)), "{answers:?}");
    println!("{handled} of {} handled", answers.len());
    let effects = stage.effects();
    assert_eq!(effects.len(), 2 * handled);
    assert!(handled > 50, "too few to show anything: {handled}");
    let epochs: Vec<u64> =
        effects.iter().map(|effect| effect.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(epochs.is_sorted(), "{effects:?}");
}
