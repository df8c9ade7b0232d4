//! Who is who: the incarnation tells two processes of one id apart.

use bellwether_core::{ErrorKind, Outcome};

use super::case::{Case, Ran, Stop, case, ensure};
use super::stage::Stage;
use super::stale::untouched;

pub(super) const CASES: &[Case] = &[
    case!("same id twice never leads twice", same_id_twice),
    case!("same id after a restart waits like anybody", restart_waits),
    case!("a retired candidate leaves nothing behind", retired),
    case!("danger reclaim takes the own id's record at once", danger_reclaim),
    case!("danger reclaim takes nobody else's record", danger_reclaim_of_others),
];

async fn same_id_twice(stage: Stage) -> Ran {
    let (one, two) = (stage.candidate("twin").await?, stage.candidate("twin").await?);
    let grant = one.lead().await?;
    two.denied().await?;
    let seen = two.observe().await?;
    ensure!(!seen.is_held_by(&two.bid.who), "the second is told that it leads itself");
    untouched(&one, &grant).await?;
    // The grant of the one is worth nothing in the hands of the other.
    let forged = bellwether_core::Grant { incarnation: two.bid.who.incarnation, ..grant.clone() };
    let answer = two.renew(&forged).await;
    ensure!(!matches!(answer, Outcome::Done(_)), "the second renewed the first's leadership");
    let answer = two.release(&forged).await;
    ensure!(!matches!(answer, Outcome::Done(_)), "the second released the first's leadership");
    untouched(&one, &grant).await?;
    two.denied().await?;
    Ok(())
}

async fn restart_waits(stage: Stage) -> Ran {
    let before = stage.candidate("a").await?;
    let grant = before.lead().await?;
    // The earlier start is still there: nothing proves it dead.
    stage.candidate("a").await?.take_over(&grant).await?;
    Ok(())
}

async fn retired(stage: Stage) -> Ran {
    let a = stage.candidate("a").await?;
    let grant = a.lead().await?;
    a.release_done(&grant).await?;
    a.backend.retire(&a.on, &a.bid.who);
    // The same connection, once more, as a process does that stops one election and starts it again.
    let again = stage.actor("a", a.backend.clone(), a.clock.clone());
    let second = again.lead().await?;
    ensure!(second.epoch > grant.epoch, "{:?} followed {:?}", second.epoch, grant.epoch);
    // Retiring the one must not have taken anything from the other, however late it is heard.
    a.backend.retire(&a.on, &a.bid.who);
    untouched(&again, &second).await
}

async fn danger_reclaim(stage: Stage) -> Ran {
    let before = stage.candidate("a").await?;
    let first = before.lead().await?;
    let mut after = stage.candidate("a").await?;
    after.denied().await?;
    after.bid.danger_reclaim = true;
    match after.claim().await {
        Outcome::Done(grant) => {
            ensure!(grant.epoch > first.epoch, "{:?} followed {:?}", grant.epoch, first.epoch);
            untouched(&after, &grant).await
        }
        Outcome::Refused(error) if error.kind() == ErrorKind::Unsupported => {
            Err(Stop::skipped(format!("the store cannot: {error}")))
        }
        other => Err(Stop::failed(format!("was to take its own record: {other:?}"))),
    }
}

async fn danger_reclaim_of_others(stage: Stage) -> Ran {
    let (a, mut b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let grant = a.lead().await?;
    b.bid.danger_reclaim = true;
    let outcome = b.claim().await;
    ensure!(!matches!(outcome, Outcome::Done(_)), "b took a's record");
    untouched(&a, &grant).await
}
