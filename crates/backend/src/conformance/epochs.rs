//! Epochs go up, strictly, however a leadership ends.

use bellwether_core::{Epoch, Grant};

use super::case::{Case, Ran, Stop, case, ensure, needs};
use super::stage::{Stage, unknown};
use crate::faults::{Fault, Op};

pub(super) const CASES: &[Case] = &[
    case!("epoch up over release", over_release),
    case!("epoch up over expiry", over_expiry),
    case!("epoch up over a restart with the same id", over_restart),
    case!("epoch up over deletion of the record", over_deletion),
    case!("epoch up over deletion after a release", over_deletion_after_release),
    case!("epoch up over a reclaim of one's own unknown claim", over_unknown),
    case!("epoch above the floor", above_floor),
    case!("epoch above the floor for those who do not know it", floor_outlives_record),
];

fn up(old: &Grant, new: &Grant) -> Ran {
    ensure!(new.epoch > old.epoch, "{:?} followed {:?}", new.epoch, old.epoch);
    ensure!(new.epoch <= Epoch::MAX, "{:?} is too large for JSON", new.epoch);
    Ok(())
}

async fn over_release(stage: Stage) -> Ran {
    let mut leader = stage.candidate("a").await?;
    let mut last = leader.lead().await?;
    for id in ["b", "a", "b", "c"] {
        leader.release_done(&last).await?;
        // A new connection each time: it knows nothing but what the store knows.
        leader = stage.candidate(id).await?;
        let grant = leader.lead().await?;
        up(&last, &grant)?;
        last = grant;
    }
    leader.release_done(&last).await
}

async fn over_expiry(stage: Stage) -> Ran {
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let first = a.lead().await?;
    let second = b.take_over(&first).await?;
    let third = a.take_over(&second).await?;
    up(&first, &second)?;
    up(&second, &third)
}

async fn over_restart(stage: Stage) -> Ran {
    let a = stage.candidate("a").await?;
    let first = a.lead().await?;
    drop(a);
    let (second, _) =
        stage.candidate("a").await?.lead_by(stage.clock.boot() + stage.ttl + stage.slack).await?;
    up(&first, &second)
}

async fn over_deletion(stage: Stage) -> Ran {
    let a = stage.candidate("a").await?;
    let first = a.lead().await?;
    stage.delete().await?;
    // Neither has seen the record, nor knows the epoch; only the store can.
    let b = stage.candidate("b").await?;
    let (second, _) = b.lead_by(stage.clock.boot() + stage.ttl + stage.slack).await?;
    up(&first, &second)?;
    stage.delete().await?;
    let (third, _) = a.lead_by(stage.clock.boot() + stage.ttl + stage.slack).await?;
    up(&second, &third)
}

async fn over_deletion_after_release(stage: Stage) -> Ran {
    let a = stage.candidate("a").await?;
    let first = a.lead().await?;
    a.release_done(&first).await?;
    stage.delete().await?;
    let second = stage.candidate("b").await?.lead().await?;
    up(&first, &second)
}

async fn over_unknown(stage: Stage) -> Ran {
    let (a, faults) = stage.faulty("a").await?;
    let first = a.lead().await?;
    a.release_done(&first).await?;
    let mut last = first;
    for _ in 0..3 {
        faults.next(Op::Write, Fault::LosesAnswer);
        unknown("a claim whose answer is lost", a.claim().await)?;
        // It was written, under an epoch that we were never told.
        let hidden = a.observe().await?.epoch;
        let grant = a.lead().await?;
        up(&last, &grant)?;
        ensure!(hidden.is_none_or(|hidden| grant.epoch > hidden), "{:?} was used twice", grant.epoch);
        a.release_done(&grant).await?;
        last = grant;
    }
    Ok(())
}

/// A leadership, released by now, of a candidate whose floor is far above the store's own counter.
async fn led_above_floor(stage: &Stage) -> Result<Grant, Stop> {
    let mut a = stage.candidate("a").await?;
    let first = a.lead().await?;
    a.release_done(&first).await?;
    a.bid.floor = Epoch::new(first.epoch.get() + 1_000).unwrap_or(Epoch::MAX);
    // That the grant is above the floor is what `lead` looks at.
    let second = a.lead().await?;
    a.release_done(&second).await?;
    Ok(second)
}

async fn above_floor(stage: Stage) -> Ran {
    let second = led_above_floor(&stage).await?;
    let third = stage.candidate("b").await?.lead().await?;
    up(&second, &third)
}

async fn floor_outlives_record(stage: Stage) -> Ran {
    needs!(stage.can.floor_outlives_record, "epochs come from the store's own counter");
    let second = led_above_floor(&stage).await?;
    stage.delete().await?;
    let third = stage.candidate("b").await?.lead().await?;
    up(&second, &third)
}
