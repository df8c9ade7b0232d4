//! What is kept beside the lease: past leaderships and cooldowns.

use std::time::Duration;

use bellwether_core::{Epoch, ReleaseOptions, Wall};

use super::case::{Case, Ran, case, ensure, needs};
use super::stage::{Actor, Stage, held};
use super::stale::untouched;
use crate::{HISTORY_MAX, Past};

pub(super) const CASES: &[Case] = &[
    case!("history is remembered and completed", history_completed),
    case!("history is in order of epochs", history_order),
    case!("history is capped", history_capped),
    case!("cooldown outlives a restart", cooldown_outlives_restart),
    case!("cooldown is clipped to one cooldown", cooldown_clipped),
    case!("cooldown ends", cooldown_ends),
];

fn past(of: &Actor, epoch: u64) -> Past {
    Past {
        epoch: Epoch::new(epoch).expect("small"),
        id: of.bid.who.id.clone(),
        incarnation: Some(of.bid.who.incarnation),
        // Whole microseconds, as they are written.
        since: Wall::from_unix_nanos(1_700_000_000_000_000_000 + epoch as i64 * 1_000),
        until: None,
        ended: None,
    }
}

async fn history_completed(stage: Stage) -> Ran {
    needs!(stage.can.history, "the store keeps no history");
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    ensure!(b.backend.history(&b.on).await?.is_empty(), "there is a history before anybody led");
    let grant = a.lead().await?;
    let mut first = past(&a, grant.epoch.get());
    a.backend.remember(&a.on, &first).await?;
    let all = b.backend.history(&b.on).await?;
    ensure!(all == [first.clone()], "remembered as {all:?}");
    // Keeping a history must not disturb what it is about.
    untouched(&a, &grant).await?;
    a.release_done(&grant).await?;
    first.until = Some(Wall::from_unix_nanos(1_700_000_100_000_000_000));
    first.ended = Some("released".to_owned());
    a.backend.remember(&a.on, &first).await?;
    let all = b.backend.history(&b.on).await?;
    ensure!(all == [first], "completed as {all:?}");
    let other = stage.election("other");
    ensure!(b.backend.history(&other).await?.is_empty(), "another election has the same history");
    Ok(())
}

async fn history_order(stage: Stage) -> Ran {
    needs!(stage.can.history, "the store keeps no history");
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    // The successor may write its line before the predecessor completes its own.
    for epoch in [20, 40, 30, 10] {
        let by = if epoch % 20 == 0 { &a } else { &b };
        by.backend.remember(&by.on, &past(by, epoch)).await?;
    }
    let all: Vec<_> = a.backend.history(&a.on).await?.iter().map(|past| past.epoch.get()).collect();
    ensure!(all == [10, 20, 30, 40], "the order is {all:?}");
    Ok(())
}

async fn history_capped(stage: Stage) -> Ran {
    needs!(stage.can.history, "the store keeps no history");
    let a = stage.candidate("a").await?;
    let count = HISTORY_MAX as u64 + 5;
    for epoch in 1..=count {
        a.backend.remember(&a.on, &past(&a, epoch)).await?;
    }
    let all: Vec<_> = a.backend.history(&a.on).await?.iter().map(|past| past.epoch.get()).collect();
    let expected: Vec<_> = (6..=count).collect();
    ensure!(all == expected, "kept are {all:?}");
    Ok(())
}

/// A leadership of `a` that ended with a cooldown of this length.
async fn stepped_down(stage: &Stage, cooldown: Duration) -> Ran {
    needs!(stage.can.cooldown, "a cooldown does not outlive a restart here");
    let a = stage.candidate("a").await?;
    let grant = a.lead().await?;
    let how = ReleaseOptions { reserve_for: None, cooldown: Some(cooldown) };
    held("the release", a.release_as(&grant, &how).await)
}

async fn restarted(stage: &Stage, id: &str, cooldown: Duration) -> Result<Actor, super::Stop> {
    let mut actor = stage.candidate(id).await?;
    actor.bid.cooldown = Some(cooldown);
    Ok(actor)
}

async fn cooldown_outlives_restart(stage: Stage) -> Ran {
    let cooldown = Duration::from_secs(60);
    stepped_down(&stage, cooldown).await?;
    let again = restarted(&stage, "a", cooldown).await?;
    let left = again.denied().await?.cooldown;
    let wrong = format!("of a minute {left:?} is left");
    ensure!(left.is_some_and(|left| left <= cooldown && left > cooldown / 2), "{wrong}");
    // Only that id stays away.
    let other = restarted(&stage, "b", cooldown).await?;
    other.lead().await?;
    Ok(())
}

async fn cooldown_clipped(stage: Stage) -> Ran {
    // As if the clock that wrote it had been an hour ahead.
    stepped_down(&stage, Duration::from_secs(3_600)).await?;
    let longest = Duration::from_secs(2);
    let left = restarted(&stage, "a", longest).await?.denied().await?.cooldown;
    ensure!(left.is_some_and(|left| left <= longest), "{left:?} is left, more than one cooldown");
    Ok(())
}

async fn cooldown_ends(stage: Stage) -> Ran {
    let cooldown = Duration::from_millis(200);
    stepped_down(&stage, cooldown).await?;
    tokio::time::sleep(2 * cooldown).await;
    restarted(&stage, "a", cooldown).await?.lead().await?;
    Ok(())
}
