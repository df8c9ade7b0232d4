//! Time: whose clock counts, whose ttl counts, and from when.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{Clock, Grant};

use super::case::{Case, Ran, case, ensure, needs};
use super::stage::{Actor, OtherClock, Stage, certainly_not};
use crate::faults::{Fault, Op};

pub(super) const CASES: &[Case] = &[
    case!("expiry allows takeover", expiry_allows_takeover),
    case!("the last renewal counts, not the claim", last_renewal_counts),
    case!("a clock set ahead deposes nobody", clock_ahead),
    case!("a clock set back blocks nobody", clock_back),
    case!("the record's ttl counts, not the follower's", record_ttl_counts),
    case!("a record seen and vanished counts for its ttl", vanished_counts),
    case!("a renewal that nobody saw counts when the record vanishes", unseen_renewal_counts),
    case!("renewals that nobody saw for a ttl count when the record vanishes", unseen_renewals_count),
    case!("a slow look makes no record older", slow_look),
];

async fn expiry_allows_takeover(stage: Stage) -> Ran {
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let grant = a.lead().await?;
    b.take_over(&grant).await?;
    Ok(())
}

async fn last_renewal_counts(stage: Stage) -> Ran {
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let first = a.lead().await?;
    b.denied().await?;
    tokio::time::sleep(stage.ttl / 2).await;
    let renewed = a.keep(&first).await?;
    b.take_over(&renewed).await?;
    Ok(())
}

async fn clock_ahead(stage: Stage) -> Ran {
    takeover_by_other_clock(&stage, 3_600).await
}

async fn clock_back(stage: Stage) -> Ran {
    takeover_by_other_clock(&stage, -3_600).await
}

/// The follower's machine booted long before ours, and its wall clock is wrong: neither may change a thing.
async fn takeover_by_other_clock(stage: &Stage, wall_ahead_seconds: i64) -> Ran {
    let booted_earlier = Duration::from_secs(1_000_000);
    let clock: Arc<dyn Clock> =
        Arc::new(OtherClock { inner: Arc::clone(&stage.clock), booted_earlier, wall_ahead_seconds });
    let (a, b) = (stage.candidate("a").await?, stage.candidate_by("b", clock).await?);
    let grant = a.lead().await?;
    b.denied().await?;
    let (_, _) = b.lead_by(b.clock.boot() + stage.ttl + stage.slack).await?;
    let (now, end) = (stage.clock.boot(), grant.counted_from + grant.ttl);
    ensure!(now >= end, "b got in {:?} before the leader's ttl was over", end.since(now));
    Ok(())
}

async fn record_ttl_counts(stage: Stage) -> Ran {
    needs!(stage.can.ttl_visible, "candidates cannot read each other's ttl, so all use the same");
    let (mut a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    a.bid.ttl = 2 * stage.ttl;
    let grant = a.lead().await?;
    ensure!(grant.ttl >= 2 * stage.ttl, "granted {:?} instead of {:?}", grant.ttl, 2 * stage.ttl);
    b.take_over(&grant).await?;
    Ok(())
}

async fn vanished_counts(stage: Stage) -> Ran {
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let grant = a.lead().await?;
    b.denied().await?;
    stage.delete().await?;
    // The old leader does not know yet, and may believe until its deadline.
    b.take_over(&grant).await?;
    certainly_not("the old leader's renewal", || a.renew(&grant)).await
}

async fn unseen_renewal_counts(stage: Stage) -> Ran {
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let grant = a.lead().await?;
    b.denied().await?;
    tokio::time::sleep(stage.ttl / 2).await;
    vanishes_after_unseen(&stage, a.keep(&grant).await?, &b).await
}

async fn unseen_renewals_count(stage: Stage) -> Ran {
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let mut grant = a.lead().await?;
    b.denied().await?;
    // What b saw has run out by the end of it, and what it did not see has not.
    for _ in 0..5 {
        tokio::time::sleep(stage.ttl / 4).await;
        grant = a.keep(&grant).await?;
    }
    vanishes_after_unseen(&stage, grant, &b).await
}

/// The leader renewed last with this grant, which `b` has not looked at; nobody else leads within its ttl.
async fn vanishes_after_unseen(stage: &Stage, grant: Grant, b: &Actor) -> Ran {
    stage.delete().await?;
    b.succeed(&grant).await?;
    Ok(())
}

async fn slow_look(stage: Stage) -> Ran {
    let (a, (b, faults)) = (stage.candidate("a").await?, stage.faulty("b").await?);
    faults.next(Op::Read, Fault::Slow(stage.ttl / 2));
    faults.next(Op::Write, Fault::Slow(stage.ttl / 2));
    let look = b.spawn_claim();
    tokio::time::sleep(stage.ttl / 3).await;
    // Written while b's look is on its way, so b sees a record that is younger than its question.
    let grant = a.lead().await?;
    let _ = look.await;
    faults.heal();
    b.take_over(&grant).await?;
    Ok(())
}
