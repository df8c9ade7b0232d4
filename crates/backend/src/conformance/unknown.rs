//! Calls of which nobody knows how they ended.

use bellwether_core::{ErrorKind, Grant, Outcome};

use super::case::{Case, Ran, case, ensure};
use super::stage::{Stage, certainly_not, held, released_after_all, unknown};
use crate::faults::{Fault, Op};

pub(super) const CASES: &[Case] = &[
    case!("unknown outcome resolved", unknown_resolved),
    case!("an unknown claim keeps others out", unknown_excludes),
    case!("a claim in our name that nobody leads on is released", unknown_released),
    case!("a claim that never arrived holds nothing", never_arrived),
    case!("conflict with oneself adopted", conflict_with_oneself),
    case!("a renewal whose answer was lost is renewed", lost_renewal),
    case!("a release whose answer was lost is a release", lost_release),
    case!("a permanent error is refused", refused),
];

async fn unknown_resolved(stage: Stage) -> Ran {
    let (a, faults) = stage.faulty("a").await?;
    faults.next(Op::Write, Fault::LosesAnswer);
    unknown("a claim whose answer is lost", a.claim().await)?;
    // Not stuck behind oneself: one more try is enough.
    let grant = a.lead().await?;
    a.keep(&grant).await?;
    a.release_done(&grant).await
}

async fn unknown_excludes(stage: Stage) -> Ran {
    let ((a, faults), b) = (stage.faulty("a").await?, stage.candidate("b").await?);
    b.lead_once().await?;
    faults.next(Op::Write, Fault::LosesAnswer);
    let sent = a.clock.boot();
    unknown("a claim whose answer is lost", a.claim().await)?;
    b.denied().await?;
    let (_, now) = b.lead_by(b.clock.boot() + stage.ttl + stage.slack).await?;
    ensure!(now >= sent + stage.ttl, "b got in before the ttl of what a may hold was over");
    Ok(())
}

async fn unknown_released(stage: Stage) -> Ran {
    let ((a, faults), b) = (stage.faulty("a").await?, stage.candidate("b").await?);
    b.lead_once().await?;
    faults.next(Op::Write, Fault::LosesAnswer);
    unknown("a claim whose answer is lost", a.claim().await)?;
    let seen = a.observe().await?;
    ensure!(seen.leader() == Some(&a.bid.who.id), "the store shows {:?}", seen.leader());
    // Where the epoch can be read, that is enough to release; elsewhere a second claim tells it.
    let grant = match seen.epoch {
        Some(epoch) => Grant {
            epoch,
            incarnation: a.bid.who.incarnation,
            ttl: stage.ttl,
            counted_from: a.clock.boot(),
            after_crash: false,
        },
        None => a.lead().await?,
    };
    a.release_done(&grant).await?;
    b.lead().await?;
    Ok(())
}

async fn never_arrived(stage: Stage) -> Ran {
    let ((a, faults), b) = (stage.faulty("a").await?, stage.candidate("b").await?);
    faults.next(Op::Write, Fault::Fails(ErrorKind::Unavailable));
    unknown("a claim that was not sent", a.claim().await)?;
    b.lead().await?;
    a.denied().await?;
    Ok(())
}

async fn conflict_with_oneself(stage: Stage) -> Ran {
    let (a, faults) = stage.faulty("a").await?;
    let mut grant = a.lead().await?;
    for _ in 0..3 {
        faults.next(Op::Write, Fault::Twice);
        grant = a.keep(&grant).await?;
    }
    // And with a claim: denied by oneself or held, but never stuck.
    a.release_done(&grant).await?;
    faults.next(Op::Write, Fault::Twice);
    let again = a.lead_over_own_claim().await?;
    a.keep(&again).await?;
    Ok(())
}

async fn lost_renewal(stage: Stage) -> Ran {
    let ((a, faults), b) = (stage.faulty("a").await?, stage.candidate("b").await?);
    let mut grant = a.lead().await?;
    for _ in 0..3 {
        faults.next(Op::Write, Fault::LosesAnswer);
        unknown("a renewal whose answer is lost", a.renew(&grant).await)?;
        faults.next(Op::Write, Fault::Fails(ErrorKind::Unavailable));
        unknown("a renewal that was not sent", a.renew(&grant).await)?;
        grant = a.keep(&grant).await?;
    }
    b.denied().await?;
    a.release_done(&grant).await
}

async fn lost_release(stage: Stage) -> Ran {
    let ((a, faults), b) = (stage.faulty("a").await?, stage.candidate("b").await?);
    let grant = a.lead().await?;
    faults.always(Op::Write, Fault::Fails(ErrorKind::Unavailable));
    unknown("a release that was not sent", a.release(&grant).await)?;
    faults.always(Op::Write, Fault::None);
    b.denied().await?;
    faults.next(Op::Write, Fault::LosesAnswer);
    released_after_all("a release whose answer is lost", a.release(&grant).await)?;
    b.lead().await?;
    // Tried once more, as a careful leader does: it finds another's record, and leaves it alone.
    certainly_not("a release after the release", || a.release(&grant)).await?;
    ensure!(b.observe().await?.leader() == Some(&b.bid.who.id), "b's record was touched");
    Ok(())
}

async fn refused(stage: Stage) -> Ran {
    let (a, faults) = stage.faulty("a").await?;
    faults.always(Op::Write, Fault::Fails(ErrorKind::PermissionDenied));
    let outcome = a.claim().await;
    ensure!(matches!(outcome, Outcome::Refused(_)), "a claim without permission ended as {outcome:?}");
    faults.heal();
    let grant = a.lead().await?;
    held("the release", a.release(&grant).await)
}
