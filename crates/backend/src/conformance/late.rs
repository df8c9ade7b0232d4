//! Answers and writes that come late.

use std::time::Duration;

use bellwether_core::Outcome;

use super::case::{Case, Ran, Stop, case, ensure};
use super::stage::{Stage, held, released_after_all, unknown};
use super::stale::untouched;
use crate::faults::{Fault, Gate, Op};

pub(super) const CASES: &[Case] = &[
    case!("late claim released", late_claim_released),
    case!("a late answer counts from its request", late_answer),
    case!("a claim that arrives late takes nothing from the holder", late_delivery_of_claim),
    case!("a renewal that arrives late takes nothing from the successor", late_delivery_of_renewal),
    case!("a release that arrives late takes nothing from the successor", late_delivery_of_release),
    case!("a claim that arrives between leaves nobody stuck", late_delivery_before_retry),
    case!("a slow store is still right", slow_store),
];

async fn late_claim_released(stage: Stage) -> Ran {
    let ((a, faults), b) = (stage.faulty("a").await?, stage.candidate("b").await?);
    b.lead_once().await?;
    let gate = Gate::new();
    faults.next(Op::Write, Fault::HoldsAnswer(gate.clone()));
    let claim = tokio::spawn({
        let a = a.clone();
        async move { a.claim().await }
    });
    stage.promptly("the claim reaches the store", gate.reached()).await?;
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
    let gate = Gate::new();
    faults.next(Op::Write, Fault::HoldsAnswer(gate.clone()));
    let claim = tokio::spawn({
        let a = a.clone();
        async move { a.claim().await }
    });
    stage.promptly("the claim reaches the store", gate.reached()).await?;
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
    let gate = Gate::new();
    faults.next(Op::Write, Fault::HoldsDelivery(gate.clone()));
    unknown("a claim that is still under way", a.claim().await)?;
    let grant = b.lead().await?;
    gate.open();
    stage.promptly("the claim is delivered", gate.done()).await?;
    untouched(&b, &grant).await
}

async fn late_delivery_of_renewal(stage: Stage) -> Ran {
    let ((a, faults), b) = (stage.faulty("a").await?, stage.candidate("b").await?);
    let old = a.lead().await?;
    let gate = Gate::new();
    faults.next(Op::Write, Fault::HoldsDelivery(gate.clone()));
    unknown("a renewal that is still under way", a.renew(&old).await)?;
    let new = b.take_over(&old).await?;
    gate.open();
    stage.promptly("the renewal is delivered", gate.done()).await?;
    untouched(&b, &new).await
}

async fn late_delivery_of_release(stage: Stage) -> Ran {
    let ((a, faults), b) = (stage.faulty("a").await?, stage.candidate("b").await?);
    let old = a.lead().await?;
    let gate = Gate::new();
    faults.next(Op::Write, Fault::HoldsDelivery(gate.clone()));
    let known = released_after_all("a release that is still under way", a.release(&old).await)?;
    let new = if known { b.lead().await? } else { b.take_over(&old).await? };
    gate.open();
    stage.promptly("the release is delivered", gate.done()).await?;
    untouched(&b, &new).await
}

async fn late_delivery_before_retry(stage: Stage) -> Ran {
    let (a, faults) = stage.faulty("a").await?;
    let gate = Gate::new();
    faults.next(Op::Write, Fault::HoldsDelivery(gate.clone()));
    unknown("a claim that is still under way", a.claim().await)?;
    gate.open();
    stage.promptly("the claim is delivered", gate.done()).await?;
    let grant = match a.claim().await {
        Outcome::Done(grant) => grant,
        // Denied by one's own late record; the next look knows it.
        Outcome::Denied(_) | Outcome::Unknown(_) => a.lead().await?,
        Outcome::Refused(error) => return Err(error.into()),
    };
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
