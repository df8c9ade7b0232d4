//! Asking something of the leader through the store.

use std::time::Duration;

use bellwether_core::{Ask, CandidateId, Epoch, Grant, Outcome, ReleaseOptions, Request, Signal, Timing};
use futures_util::StreamExt;

use super::case::{Case, Ran, Stop, case, ensure, needs};
use super::stage::{Actor, Stage, certainly_not, held};
use super::stale::untouched;
use crate::Notices;

pub(super) const CASES: &[Case] = &[
    case!("a request to step down reaches the leader", reaches_leader),
    case!("a request is told once and can be made again", told_once),
    case!("every kind of request arrives as it was made", every_kind),
    case!("a request for an old epoch is denied", old_epoch),
    case!("a request to nobody is denied", nobody),
    case!("a request does not count as a renewal", not_a_renewal),
    case!("a request takes nothing from the leader", takes_nothing),
    case!("a reservation lets the named candidate in at once", named_gets_in),
    case!("a reservation ends by itself", reservation_ends),
];

fn step_down(epoch: Epoch) -> Request {
    Request { epoch, what: Ask::StepDown { to: None } }
}

async fn requested(news: &mut Notices) -> Result<Request, Stop> {
    while let Some(notice) = news.next().await {
        if let Signal::Requested(request) = notice.signal {
            return Ok(request);
        }
    }
    Err(Stop::failed("the stream of news ended"))
}

/// A leader that listens as a driver does.
async fn listening(stage: &Stage) -> Result<(Actor, Notices, Grant), Stop> {
    needs!(stage.can.requests, "a leader cannot be asked");
    let a = stage.candidate("a").await?;
    let news = a.backend.signals();
    a.backend.follow(&a.on);
    let grant = a.lead().await?;
    Ok((a, news, grant))
}

/// Asks, lets the leader renew as it would, and returns what it was told.
async fn ask(
    stage: &Stage,
    by: &Actor,
    (a, news, grant): (&Actor, &mut Notices, &Grant),
    what: &Request,
) -> Result<Request, Stop> {
    held("the request", by.backend.request(&by.on, what).await)?;
    if !stage.can.notifies {
        a.keep(grant).await?;
    }
    stage.promptly("the request reaches the leader", requested(news)).await?
}

async fn reaches_leader(stage: Stage) -> Ran {
    let (a, mut news, grant) = listening(&stage).await?;
    let b = stage.candidate("b").await?;
    let told = ask(&stage, &b, (&a, &mut news, &grant), &step_down(grant.epoch)).await?;
    ensure!(told == step_down(grant.epoch), "the leader was told {told:?}");
    a.release_done(&grant).await?;
    // The next leader finds no request of its predecessor's.
    let grant = b.lead().await?;
    b.keep(&grant).await?;
    Ok(())
}

async fn told_once(stage: Stage) -> Ran {
    let (a, mut news, mut grant) = listening(&stage).await?;
    let b = stage.candidate("b").await?;
    let first = step_down(grant.epoch);
    ask(&stage, &b, (&a, &mut news, &grant), &first).await?;
    for _ in 0..3 {
        grant = a.keep(&grant).await?;
    }
    // Another request comes next: had the first been told again, it would stand before it.
    let other = Request { epoch: grant.epoch, what: Ask::StepDown { to: Some(b.bid.who.id.clone()) } };
    let told = ask(&stage, &b, (&a, &mut news, &grant), &other).await?;
    ensure!(told == other, "the leader was told {told:?} once more");
    grant = a.keep(&grant).await?;
    // And the very same may be asked again by somebody who got no answer.
    let told = ask(&stage, &b, (&a, &mut news, &grant), &first).await?;
    ensure!(told == first, "the leader was told {told:?}");
    Ok(())
}

async fn every_kind(stage: Stage) -> Ran {
    let (a, mut news, mut grant) = listening(&stage).await?;
    let b = stage.candidate("b").await?;
    let odd = CandidateId::new("näme with \"quotes\", a \\ and a /").expect("legal");
    for what in [
        Ask::StepDown { to: Some(odd.clone()) },
        Ask::StepDownLater { to: Some(odd.clone()), after: Duration::from_millis(90_001) },
        Ask::StepDownLater { to: None, after: Duration::from_secs(3_600) },
        Ask::Preempt { by: odd, priority: -3 },
        Ask::StepDown { to: None },
    ] {
        let request = Request { epoch: grant.epoch, what };
        let told = ask(&stage, &b, (&a, &mut news, &grant), &request).await?;
        ensure!(told == request, "{request:?} arrived as {told:?}");
        grant = a.keep(&grant).await?;
    }
    Ok(())
}

async fn old_epoch(stage: Stage) -> Ran {
    let (a, mut news, old) = listening(&stage).await?;
    needs!(stage.can.epoch_visible, "only the leader knows its epoch");
    a.release_done(&old).await?;
    let grant = a.lead().await?;
    let b = stage.candidate("b").await?;
    let stale = step_down(old.epoch);
    certainly_not("a request for an old epoch", || b.backend.request(&b.on, &stale)).await?;
    let told = ask(&stage, &b, (&a, &mut news, &grant), &step_down(grant.epoch)).await?;
    ensure!(told.epoch == grant.epoch, "the leader was asked for {:?}", told.epoch);
    Ok(())
}

async fn nobody(stage: Stage) -> Ran {
    needs!(stage.can.requests, "a leader cannot be asked");
    needs!(stage.can.epoch_visible, "only the leader knows its epoch");
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let early = step_down(Epoch::new(1).expect("small"));
    certainly_not("a request before anybody led", || b.backend.request(&b.on, &early)).await?;
    let grant = a.lead().await?;
    a.release_done(&grant).await?;
    let late = step_down(grant.epoch);
    certainly_not("a request after the release", || b.backend.request(&b.on, &late)).await?;
    b.lead().await?;
    Ok(())
}

async fn not_a_renewal(stage: Stage) -> Ran {
    needs!(stage.can.requests, "a leader cannot be asked");
    let (a, b, c) = (stage.candidate("a").await?, stage.candidate("b").await?, stage.candidate("c").await?);
    let grant = a.lead().await?;
    // Kept busy by requests, each different, while the leader itself is silent.
    let nagging = async {
        for number in 0u64.. {
            let to = CandidateId::new(format!("candidate-{number}")).ok();
            let request = Request { epoch: grant.epoch, what: Ask::StepDown { to } };
            let _ = c.backend.request(&c.on, &request).await;
            tokio::time::sleep(stage.ttl / 10).await;
        }
        unreachable!("there are more numbers than time")
    };
    tokio::select! {
        taken = b.take_over(&grant) => taken.map(|_| ()),
        () = nagging => Ok(()),
    }
}

async fn takes_nothing(stage: Stage) -> Ran {
    needs!(stage.can.requests, "a leader cannot be asked");
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let mut grant = a.lead().await?;
    for _ in 0..5 {
        held("the request", b.backend.request(&b.on, &step_down(grant.epoch)).await)?;
        grant = a.keep(&grant).await?;
    }
    b.denied().await?;
    untouched(&a, &grant).await
}

/// A release that keeps the record for `named`, and the instant before it.
async fn handed_over(stage: &Stage, named: &Actor) -> Result<bellwether_core::Boot, Stop> {
    let a = stage.candidate("a").await?;
    let grant = a.lead().await?;
    named.denied().await?;
    let from = a.clock.boot();
    let how = ReleaseOptions { reserve_for: Some(named.bid.who.id.clone()), cooldown: None };
    held("the release", a.release_as(&grant, &how).await)?;
    Ok(from)
}

async fn named_gets_in(stage: Stage) -> Ran {
    let (named, other) = (stage.candidate("named").await?, stage.candidate("other").await?);
    let from = handed_over(&stage, &named).await?;
    match other.claim().await {
        Outcome::Denied(seen) => {
            let shown = seen.reserved_for.as_ref();
            ensure!(shown == Some(&named.bid.who.id), "the record is kept for {shown:?}");
        }
        Outcome::Done(_) => {
            let late = other.clock.boot().since(from) >= Timing::reservation(stage.ttl);
            ensure!(late, "another got in while the record was kept");
            return Err(Stop::failed("the machine is too busy for this case"));
        }
        outcome => return Err(Stop::failed(format!("another was to be denied: {outcome:?}"))),
    }
    named.lead().await?;
    other.denied().await?;
    Ok(())
}

async fn reservation_ends(stage: Stage) -> Ran {
    let (named, other) = (stage.candidate("named").await?, stage.candidate("other").await?);
    let from = handed_over(&stage, &named).await?;
    let span: Duration = Timing::reservation(stage.ttl);
    let (_, now) = other.lead_by(other.clock.boot() + span + stage.slack).await?;
    ensure!(now >= from + span, "another got in {:?} too early", (from + span).since(now));
    Ok(())
}
