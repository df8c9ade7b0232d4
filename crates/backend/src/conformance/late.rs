//! Answers and writes that come late.

use std::time::Duration;

use super::case::{Case, Ran, Stop, case, ensure};
use super::stage::{Actor, Claiming, Stage, held, released_after_all, unknown};
use super::stale::untouched;
use crate::faults::{Fault, Faults, Gate, Op};

pub(super) const CASES: &[Case] = &[
    case!("late claim released", late_claim_released),
    case!("a late answer counts from its request", late_answer),
    case!("a claim that arrives late takes nothing from the holder", late_delivery_of_claim),
    case!("a renewal that arrives late takes nothing from the successor", late_delivery_of_renewal),
    case!("a release that arrives late takes nothing from the successor", late_delivery_of_release),
    case!("a claim that arrives between leaves nobody stuck", late_delivery_before_retry),
    case!("a slow store is still right", slow_store),
];

/// The next write is delivered when the gate opens.
fn hold_delivery(faults: &Faults) -> Gate {
    let gate = Gate::new();
    faults.next(Op::Write, Fault::HoldsDelivery(gate.clone()));
    gate
}

async fn deliver(stage: &Stage, gate: &Gate) -> Ran {
    gate.open();
    stage.promptly("the write is delivered", gate.done()).await
}

/// A claim that has reached the store, and whose answer comes when the gate opens.
async fn unanswered_claim(stage: &Stage, a: &Actor, faults: &Faults) -> Result<(Claiming, Gate), Stop> {
    let gate = Gate::new();
    faults.next(Op::Write, Fault::HoldsAnswer(gate.clone()));
    let claim = a.spawn_claim();
    stage.promptly("the claim reaches the store", gate.reached()).await?;
    Ok((claim, gate))
}

async fn late_claim_released(stage: Stage) -> Ran {
    let ((a, faults), b) = (stage.faulty("a").await?, stage.candidate("b").await?);
    b.lead_once().await?;
    let (claim, gate) = unanswered_claim(&stage, &a, &faults).await?;
    b.denied().await?;
    gate.open();
    let late = held("the late claim", claim.await.map_err(|error| Stop::failed(error.to_string()))?)?;
    // Its candidate has given up meanwhile; nobody leads on this grant, and it must not cost a ttl.
    a.release_done(&late).await?;
    b.lead().await?;
    Ok(())
}

async fn late_answer(stage: Stage) -> Ran {
    let (a, faults) = stage.faulty("a").await?;
    let (claim, gate) = unanswered_claim(&stage, &a, &faults).await?;
    let written_by = a.clock.boot();
    tokio::time::sleep(stage.ttl / 4).await;
    gate.open();
    let grant = held("the claim", claim.await.map_err(|error| Stop::failed(error.to_string()))?)?;
    ensure!(grant.counted_from <= written_by, "the grant counts from its answer instead of its request");
    a.keep(&grant).await?;
    Ok(())
}

async fn late_delivery_of_claim(stage: Stage) -> Ran {
    let ((a, faults), b) = (stage.faulty("a").await?, stage.candidate("b").await?);
    let gate = hold_delivery(&faults);
    unknown("a claim that is still under way", a.claim().await)?;
    let grant = b.lead().await?;
    deliver(&stage, &gate).await?;
    untouched(&b, &grant).await
}

async fn late_delivery_of_renewal(stage: Stage) -> Ran {
    let ((a, faults), b) = (stage.faulty("a").await?, stage.candidate("b").await?);
    let old = a.lead().await?;
    let gate = hold_delivery(&faults);
    unknown("a renewal that is still under way", a.renew(&old).await)?;
    let new = b.take_over(&old).await?;
    deliver(&stage, &gate).await?;
    untouched(&b, &new).await
}

async fn late_delivery_of_release(stage: Stage) -> Ran {
    let ((a, faults), b) = (stage.faulty("a").await?, stage.candidate("b").await?);
    let old = a.lead().await?;
    let gate = hold_delivery(&faults);
    let known = released_after_all("a release that is still under way", a.release(&old).await)?;
    let new = if known { b.lead().await? } else { b.take_over(&old).await? };
    deliver(&stage, &gate).await?;
    untouched(&b, &new).await
}

async fn late_delivery_before_retry(stage: Stage) -> Ran {
    let (a, faults) = stage.faulty("a").await?;
    let gate = hold_delivery(&faults);
    unknown("a claim that is still under way", a.claim().await)?;
    deliver(&stage, &gate).await?;
    let grant = a.lead_over_own_claim().await?;
    untouched(&a, &grant).await
}

async fn slow_store(stage: Stage) -> Ran {
    let ((a, faults), b) = (stage.faulty("a").await?, stage.candidate("b").await?);
    faults.latency(Duration::from_millis(5));
    let grant = a.lead().await?;
    let grant = a.keep(&grant).await?;
    b.denied().await?;
    a.release_done(&grant).await?;
    b.lead().await?;
    a.denied().await?;
    Ok(())
}
