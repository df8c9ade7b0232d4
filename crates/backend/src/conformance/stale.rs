//! Leaders that were replaced and do not know it yet.

use super::case::{Case, Ran, case, ensure};
use super::stage::{Actor, Stage, certainly_not};
use bellwether_core::Grant;

pub(super) const CASES: &[Case] = &[
    case!("stale renew refused", stale_renew),
    case!("stale release refused", stale_release),
    case!("a renewal under an older epoch of one's own is refused", own_older_epoch),
    case!("a leader whose record is gone cannot renew", record_gone),
];

async fn stale_renew(stage: Stage) -> Ran {
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let old = a.lead().await?;
    let new = b.take_over(&old).await?;
    certainly_not("a stale renewal", || a.renew(&old)).await?;
    untouched(&b, &new).await
}

async fn stale_release(stage: Stage) -> Ran {
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let old = a.lead().await?;
    let new = b.take_over(&old).await?;
    certainly_not("a stale release", || a.release(&old)).await?;
    untouched(&b, &new).await?;
    stage.candidate("c").await?.denied().await?;
    Ok(())
}

async fn own_older_epoch(stage: Stage) -> Ran {
    let a = stage.candidate("a").await?;
    let old = a.lead().await?;
    a.release_done(&old).await?;
    let new = a.lead().await?;
    ensure!(new.epoch > old.epoch, "{:?} followed {:?}", new.epoch, old.epoch);
    // The same incarnation, so only the epoch tells them apart.
    certainly_not("a renewal under the older epoch", || a.renew(&old)).await?;
    certainly_not("a release under the older epoch", || a.release(&old)).await?;
    untouched(&a, &new).await
}

async fn record_gone(stage: Stage) -> Ran {
    let a = stage.candidate("a").await?;
    let grant = a.lead().await?;
    stage.delete().await?;
    certainly_not("a renewal of what is not there", || a.renew(&grant)).await?;
    certainly_not("a release of what is not there", || a.release(&grant)).await
}

/// The leader still leads, under the same epoch, and everybody can see it.
pub(super) async fn untouched(leader: &Actor, grant: &Grant) -> Ran {
    let seen = leader.observe().await?;
    ensure!(seen.leader() == Some(&leader.bid.who.id), "the record now names {:?}", seen.leader());
    leader.keep(grant).await?;
    Ok(())
}
