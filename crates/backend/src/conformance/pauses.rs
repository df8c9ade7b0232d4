//! Pausing an election: nobody is elected until the pause ends, and whoever leads goes on.

use std::time::Duration;

use bellwether_core::{Ask, Boot, CandidateId, Outcome, Pause, ReleaseOptions, Request};

use super::case::{Case, Ran, Stop, case, ensure, needs};
use super::stage::{Actor, Stage, certainly_not, held};
use super::stale::untouched;

pub(super) const CASES: &[Case] = &[
    case!("a pause is kept or refused", kept_or_refused),
    case!("a pause keeps everybody out and ends by itself", ends_by_itself),
    case!("a pause takes nothing from the leader", takes_nothing),
    case!("a pause outlives the leadership, released or silent", outlives_leadership),
    case!("an unpause lets the next candidate in at once", unpaused),
    case!("a pause shrinks while a leader renews", shrinks),
    case!("a pause is replaced by the next one", replaced),
    case!("a pause is no way back for epochs", epochs_rise),
    case!("a pause keeps out who was named and who reclaims", no_way_past),
    case!("a preemption is not passed on while paused", not_preempted),
];

impl Stage {
    fn long_pause(&self) -> Duration {
        100 * self.ttl + Duration::from_secs(3_600)
    }
}

impl Actor {
    /// Pauses the election, in the name of this candidate; the instant before.
    async fn pause(&self, span: Duration) -> Result<Boot, Stop> {
        let from = self.clock.boot();
        let pause = Pause::new(span, Some(self.bid.who.id.clone()), Some(self.clock.wall()));
        held("the pause", self.backend.pause(&self.on, pause.as_ref()).await)?;
        Ok(from)
    }

    async fn unpause(&self) -> Result<(), Stop> {
        held("the end of the pause", self.backend.pause(&self.on, None).await)
    }

    /// Is denied, and told of a pause by that candidate; until when.
    async fn kept_out_by(&self, by: &Actor) -> Result<Boot, Stop> {
        let seen = self.denied().await?;
        let Some(paused) = seen.paused else {
            return Err(Stop::failed("a candidate is kept out by a pause and not told of it"));
        };
        ensure!(paused.by.as_ref() == Some(&by.bid.who.id), "the pause is by {:?}", paused.by);
        ensure!(paused.until > self.clock.boot(), "the pause was over at {:?}", paused.until);
        Ok(paused.until)
    }
}

async fn kept_or_refused(stage: Stage) -> Ran {
    let a = stage.candidate("a").await?;
    let pause = Pause::new(stage.long_pause(), None, None);
    match a.backend.pause(&a.on, pause.as_ref()).await {
        Outcome::Refused(_) if !stage.can.pauses => {}
        Outcome::Done(()) if stage.can.pauses => {
            a.denied().await?;
            a.unpause().await?;
        }
        outcome => {
            let can = stage.can.pauses;
            return Err(Stop::failed(format!("pauses: {can}, and a pause ended in {outcome:?}")));
        }
    }
    a.lead().await.map(|_| ())
}

async fn ends_by_itself(stage: Stage) -> Ran {
    needs!(stage.can.pauses, "elections cannot be paused");
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let span = stage.ttl;
    let from = a.pause(span).await?;
    let until = b.kept_out_by(&a).await?;
    ensure!(until >= from + span, "the pause ends {:?} too early", (from + span).since(until));
    let seen = b.observe().await?;
    ensure!(seen.leader().is_none() && seen.paused.is_some(), "an observer sees {seen:?}");
    let (grant, now) = b.lead_by(until + stage.slack).await?;
    ensure!(now >= from + span, "{} got in {:?} too early", b.bid.who.id, (from + span).since(now));
    b.keep(&grant).await?;
    ensure!(b.observe().await?.paused.is_none(), "it is still paused after its end");
    Ok(())
}

async fn takes_nothing(stage: Stage) -> Ran {
    needs!(stage.can.pauses, "elections cannot be paused");
    let (a, b, c) = (stage.candidate("a").await?, stage.candidate("b").await?, stage.candidate("c").await?);
    let mut grant = a.lead().await?;
    c.pause(stage.long_pause()).await?;
    for _ in 0..4 {
        grant = a.keep(&grant).await?;
        b.denied().await?;
    }
    untouched(&a, &grant).await?;
    ensure!(b.observe().await?.paused.is_some(), "the leader's renewals ended the pause");
    Ok(())
}

async fn outlives_leadership(stage: Stage) -> Ran {
    needs!(stage.can.pauses, "elections cannot be paused");
    let (a, b, c) = (stage.candidate("a").await?, stage.candidate("b").await?, stage.candidate("c").await?);
    let grant = a.lead().await?;
    c.pause(stage.long_pause()).await?;
    let grant = a.keep(&grant).await?;
    a.release_done(&grant).await?;
    b.kept_out_by(&c).await?;
    a.kept_out_by(&c).await?;
    c.unpause().await?;
    let grant = a.lead().await?;
    c.pause(stage.long_pause()).await?;
    // From here on the leader is silent, and its ttl passes.
    let over = grant.counted_from + grant.ttl + stage.slack / 4;
    while b.clock.boot() < over {
        b.denied().await?;
        tokio::time::sleep(stage.ttl / 10).await;
    }
    b.kept_out_by(&c).await?;
    // One that starts only now.
    stage.candidate("late").await?.kept_out_by(&c).await?;
    c.unpause().await?;
    b.lead_by(b.clock.boot() + grant.ttl + stage.slack).await?;
    Ok(())
}

async fn unpaused(stage: Stage) -> Ran {
    needs!(stage.can.pauses, "elections cannot be paused");
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    // There is nothing to end.
    a.unpause().await?;
    a.lead_once().await?;
    a.unpause().await?;
    a.pause(stage.long_pause()).await?;
    b.kept_out_by(&a).await?;
    a.unpause().await?;
    b.lead().await?;
    Ok(())
}

async fn shrinks(stage: Stage) -> Ran {
    needs!(stage.can.pauses, "elections cannot be paused");
    let (a, c) = (stage.candidate("a").await?, stage.candidate("c").await?);
    let mut grant = a.lead().await?;
    let span = stage.ttl * 2;
    c.pause(span).await?;
    grant = a.keep(&grant).await?;
    let heard = a.clock.boot();
    while a.clock.boot() < heard + stage.ttl {
        tokio::time::sleep(stage.ttl / 5).await;
        grant = a.keep(&grant).await?;
    }
    let late = stage.candidate("late").await?;
    let paused = late.observe().await?.paused;
    let until = paused.map(|paused| paused.until);
    let most = late.clock.boot() + (span - stage.ttl);
    ensure!(until.is_none_or(|until| until <= most), "the pause began anew: until {until:?}, not {most:?}");
    while a.clock.boot() < heard + span {
        tokio::time::sleep(stage.ttl / 5).await;
        grant = a.keep(&grant).await?;
    }
    a.keep(&grant).await?;
    let later = stage.candidate("later").await?.observe().await?.paused;
    ensure!(later.is_none(), "a pause that is over is shown: {later:?}");
    Ok(())
}

async fn replaced(stage: Stage) -> Ran {
    needs!(stage.can.pauses, "elections cannot be paused");
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    a.pause(stage.long_pause()).await?;
    b.kept_out_by(&a).await?;
    let from = b.pause(stage.ttl / 2).await?;
    let until = a.kept_out_by(&b).await?;
    ensure!(until < from + stage.long_pause() / 2, "the first pause still holds, until {until:?}");
    a.lead_by(until + stage.slack).await?;
    Ok(())
}

async fn epochs_rise(stage: Stage) -> Ran {
    needs!(stage.can.pauses, "elections cannot be paused");
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    // Also where there was nothing to follow before the pause.
    b.pause(stage.long_pause()).await?;
    b.unpause().await?;
    let first = a.lead().await?;
    a.release_done(&first).await?;
    b.pause(stage.long_pause()).await?;
    b.unpause().await?;
    let second = b.lead().await?;
    ensure!(second.epoch > first.epoch, "{:?} followed {:?}", second.epoch, first.epoch);
    Ok(())
}

async fn no_way_past(stage: Stage) -> Ran {
    needs!(stage.can.pauses, "elections cannot be paused");
    let (a, named, c) =
        (stage.candidate("a").await?, stage.candidate("b").await?, stage.candidate("c").await?);
    let grant = a.lead().await?;
    named.denied().await?;
    c.pause(stage.long_pause()).await?;
    let how = ReleaseOptions { reserve_for: Some(named.bid.who.id.clone()), cooldown: None };
    held("the release", a.release_as(&grant, &how).await)?;
    named.kept_out_by(&c).await?;
    let mut reclaiming = stage.candidate("a").await?;
    reclaiming.bid.danger_reclaim = true;
    reclaiming.kept_out_by(&c).await?;
    Ok(())
}

async fn not_preempted(stage: Stage) -> Ran {
    needs!(stage.can.pauses, "elections cannot be paused");
    needs!(stage.can.requests, "a leader cannot be asked");
    let (a, c) = (stage.candidate("a").await?, stage.candidate("c").await?);
    let grant = a.lead().await?;
    c.pause(stage.long_pause()).await?;
    let by = CandidateId::new("b").expect("legal");
    let request = Request { epoch: grant.epoch, what: Ask::Preempt { by, priority: 9 } };
    certainly_not("a preemption while paused", || c.backend.request(&c.on, &request)).await?;
    a.keep(&grant).await?;
    Ok(())
}
